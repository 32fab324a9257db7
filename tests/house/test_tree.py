"""What stands where, and what a tracked file may not contain."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXED = [
    "_config.yml",
    "_toc.yml",
    "book",
    "exercises",
    "solutions",
    "lib",
    "tests",
    "environment.yml",
]
LARGEST = 1_500_000  # bytes

# Written in two parts each, so that this file does not contain what it forbids.
FORBIDDEN = {
    "a path of one machine": "|".join(
        re.escape("/" + name)
        for name in ("work" + "/", "farm" + "/", "opt/" + "wheels", "opt/" + "pypi", "root/" + ".")
    ),
    "a package registry's host": "|".join(
        re.escape(host)
        for host in (
            "pypi" + ".org",
            "pythonhosted" + ".org",
            "registry." + "npmjs",
            "deb." + "debian.org",
        )
    ),
    "a mark of unfinished work": r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b",
}
# Third-party files that are kept as they came.
VENDORED = ("book/_static/mathjax/", "tests/browser/vendor/")


def tracked() -> list[Path]:
    """Every file git tracks, or would track if it were added now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def test_the_fixed_tree_is_there():
    missing = [name for name in FIXED if not (ROOT / name).exists()]
    assert not missing, f"missing at the top level: {missing}"


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_contains(what):
    matches = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(VENDORED):
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.search(FORBIDDEN[what], line):
                matches.append(f"{name}:{number}: {match[0]}")
    assert not matches, f"{what}:\n" + "\n".join(matches)


def test_no_tracked_file_is_large():
    large = {
        path.relative_to(ROOT).as_posix(): path.stat().st_size
        for path in tracked()
        if path.stat().st_size > LARGEST
    }
    assert not large, f"over {LARGEST} bytes: {large}"


def test_no_tracked_file_is_a_link():
    """A link to an environment would come with the clone, and point nowhere."""
    command = ["git", "ls-files", "--stage"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert [line for line in listed.splitlines() if line.startswith("120000")] == []


def test_lib_is_not_ignored_by_git():
    """Common .gitignore templates ignore ``lib/``; a new module would silently stay behind."""
    result = subprocess.run(
        ["git", "check-ignore", "lib/new_module.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 1, f"git ignores lib/: {result.stdout}{result.stderr}"


# Names that say nothing about the value: a name should say what the value is.
VAGUE = {"found", "said", "told", "stands", "kept"}
# Files in which a name cannot change without more: records hash their code, every notebook has a
# copy of it (and a subclass overrides that), or recorded mutants are called by it.
UNCHANGEABLE = {
    "benchmarks/compression.py",
    "lib/caches.py",
    "lib/sampling.py",
    "grading/runner/probe.py",
    "grading/runner/proxy.py",
    "tests/answers/tampering.py",
}


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """What a source names: variables, arguments, attributes, functions and classes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)):
                yield node.lineno, name


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = 1", ["found"]),
        ("def f(kept, *, said=1): self.told = 1", ["f", "kept", "said", "told"]),
        ("class Told: pass", ["Told"]),
        ("[x for found in y if (kept := 1)]", ["kept", "found"]),
        ("try: pass\nexcept E as found: pass", ["found"]),
        ('"""found"""\nprint(found)', []),
    ],
)
def test_names_are_read(source, names):
    assert sorted(name for _, name in names_in(source)) == sorted(names)


def test_names_say_what_their_values_are():
    """Answers of the bank are written as learners write, and do not count."""
    vague = [
        f"{name}:{line}: {word}"
        for path in tracked()
        if (name := path.relative_to(ROOT).as_posix()).endswith(".py")
        and name.split("/")[0] in ("lib", "grading", "tools", "benchmarks", "book", "tests")
        and name not in UNCHANGEABLE
        and not re.match(r"tests/answers/\d", name)
        for line, word in names_in(path.read_text(encoding="utf-8"))
        if word.strip("_").lower() in VAGUE
    ]
    assert not vague, "\n".join(vague)


@pytest.mark.parametrize(
    ("call", "files"),
    [
        ("os.replace(", ["grading/storage.py", "tools/files.py"]),  # files written in one step
        (".isprintable(", ["grading/submission.py"]),
    ],
)
def test_it_is_written_once(call, files):
    """These were written anew in module after module."""
    users = [path.relative_to(ROOT).as_posix() for path in tracked() if path.suffix == ".py"]
    sources = ("lib/", "grading/", "tools/", "benchmarks/", "book/")
    users = [name for name in users if name.startswith(sources)]
    assert sorted(name for name in users if call in (ROOT / name).read_text("utf-8")) == files
