"""Build `_build/learner`, the folder that learners get: ``make learner-tree``.

It holds the book, the exercises, `lib` and the commands for working with them: no solutions, no
hidden tests, no answer banks, and of grading only the module with which `make check` reads a
notebook. It is searched (`tools.leaks`) before it is left there. Only tracked files go in:
`exercises/` as of the last commit, everything else as in the working tree.
"""

import fnmatch
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools import leaks

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "_build" / "learner"
WORKFLOW = ".github/workflows/check.yml"  # `make check` after each push, in a learner's repository
FILES = (
    "_config.yml",
    "_toc.yml",
    "benchmarks/results/*.json",
    "benchmarks/results/weights/*.npz",  # for the models that run on the pages
    "binder/*",
    "book/*",
    "CITATION.cff",
    "docs/images/*",
    "environment.yml",
    "exercises/*",
    ".gitignore",
    "grading/notebook.py",
    "lib/*",
    "LICENSE",
    "LICENSE-TEXT",
    "pyproject.toml",
    "requirements.lock",
    "tools/*",
    "weights.lock",
)
# Tools that work on solutions and answers, or on the whole repository.
INSTRUCTORS = tuple(
    f"tools/{name}"
    for name in (
        "answers.py",
        "check.py",
        "discussion.py",
        "exercises.py",
        "gradescope.py",
        "jupyter/instructor/*",
        "kill_matrix.py",
        "leaks.py",
        "learner/*",
        "learner_tree.py",
        "lock.py",
    )
)
# The Makefile's targets that learners get, if it has them. A test asks for a decision on each.
TARGETS = frozenset(
    {
        *("help", "clean"),
        *("serve", "book", "take-away", "zip", "pdf", "epub"),
        *("start", "lab", "check", "chat"),
    }
)


def learner_files() -> list[str]:
    """The tracked files that learners get, relative to the repository.

    Besides them the folder has a README, a Makefile and a workflow of its own.
    """
    command = ["git", "ls-files", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [
        name
        for name in sorted(filter(None, names.split("\0")))
        if _any(name, FILES) and not _any(name, INSTRUCTORS) and (ROOT / name).is_file()
    ]


def _any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def makefile(text: str) -> str:
    """The Makefile without the rules that are not the learners'.

    Args:
        text: the repository's Makefile. A rule is the line that names its targets with the lines
            indented below it.
    """
    lines, keeping = [], True
    text = re.sub(r"\\\n\s*", "", text)
    for line in text.splitlines():
        rule = re.match(r"([\w.][\w. -]*):(?!=)\s*(.*)", line)
        if rule and rule[1] == ".PHONY":
            names = [name for name in rule[2].split() if name.startswith(".") or name in TARGETS]
            line, keeping = ".PHONY: " + " ".join(names), bool(names)
        elif rule:
            names = [name for name in rule[1].split() if name.startswith(".") or name in TARGETS]
            keeping = bool(names)
            line = f"{' '.join(names)}:{line.partition(':')[2]}"
        elif not line.startswith("\t"):
            keeping = True
        if keeping:
            lines.append(line)
    return re.sub(r"\n(# --- .*\n\s*)+(?=# --- )", "\n", "\n".join(lines)) + "\n"


def committed(name: str) -> bytes:
    """A file as of the last commit: somebody may have worked in `exercises/`."""
    command = ["git", "show", f"HEAD:{name}"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout


def build(target: Path) -> list[leaks.Leak]:
    """Write the folder from scratch, and return the leaks found in it."""
    shutil.rmtree(target, ignore_errors=True)
    for name in learner_files():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith("exercises/"):
            path.write_bytes(committed(name))
        else:
            shutil.copy(ROOT / name, path)
    shutil.copy(ROOT / "tools" / "learner" / "README.md", target)
    workflow = target / WORKFLOW
    workflow.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "tools" / "learner" / "check.yml", workflow)
    (target / "Makefile").write_text(makefile((ROOT / "Makefile").read_text(encoding="utf-8")))
    return leaks.search(target)


def main() -> int:
    hits = build(TARGET)
    if hits:
        print(*hits, sep="\n", file=sys.stderr)
        print("the folder was removed: it held what learners must not get", file=sys.stderr)
        shutil.rmtree(TARGET)
        return 1
    files = [path for path in TARGET.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 2**20
    where = TARGET.relative_to(ROOT)
    print(f"{where}: {len(files)} files, {size:.1f} MB; no hidden test, no solution")
    return 0


if __name__ == "__main__":
    sys.exit(main())
