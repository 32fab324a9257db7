"""Make `exercises/` from `solutions/`: the notebooks without solutions and hidden tests.

``python -m tools.exercises`` rewrites the whole folder with nbgrader. The result is the same,
byte for byte, at every run, so it is committed and a test holds it equal to a fresh one.

Somebody may have worked in the folder. A notebook that is neither the committed one nor one that
this command wrote is only overwritten with ``--force``.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / "solutions"
EXERCISES = ROOT / "exercises"
WRITTEN = ROOT / "_build" / "exercises.json"  # hashes of what this command wrote last
# `nbgrader generate_assignment` for each, in one process: it takes ten times as long to start.
RELEASE = """
import sys
from nbgrader.apps.generateassignmentapp import GenerateAssignmentApp
target, *slugs = sys.argv[1:]
for slug in slugs:
    GenerateAssignmentApp.launch_instance(
        [slug, "--no-db", "--force", f"--CourseDirectory.release_directory={target}"]
    )
    GenerateAssignmentApp.clear_instance()
"""


def slugs() -> list[str]:
    """The assignments, by the names of their folders in `solutions/`."""
    return sorted(path.parent.name for path in SOLUTIONS.glob("*/*.ipynb"))


def generate(target: Path) -> None:
    """Write the release version of every assignment into the folder `target`.

    Raises:
        RuntimeError: if nbgrader refuses a notebook; the message has nbgrader's output.
    """
    command = [sys.executable, "-c", RELEASE, str(target), *slugs()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"nbgrader could not make the releases:\n{done.stderr}")


def hashes(folder: Path) -> dict[str, str]:
    """A hash of each file below a folder, by name, without Jupyter's checkpoints."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".ipynb_checkpoints" not in path.parts
    }


def worked_in(fresh: Path) -> list[str]:
    """The files in `exercises/` whose changes would be lost: neither committed nor generated."""
    command = ["git", "status", "--porcelain", "-z", "--untracked-files=all", "--", EXERCISES]
    status = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    changed = {entry[3:].removeprefix("exercises/") for entry in status.split("\0") if entry}
    last_written = json.loads(WRITTEN.read_text()) if WRITTEN.exists() else {}
    generated = hashes(fresh)
    return [
        name
        for name, digest in hashes(EXERCISES).items()
        if name in changed and digest not in (last_written.get(name), generated.get(name))
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.exercises", description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="overwrite work in exercises/ too")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch) / "exercises"
        try:
            generate(fresh)
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            return 1
        if (lost := worked_in(fresh)) and not options.force:
            print(
                f"exercises/ holds work that would be lost: {', '.join(lost)}\n"
                "Move it to another folder first, or give it up with `make exercises FORCE=1`.",
                file=sys.stderr,
            )
            return 1
        shutil.rmtree(
            EXERCISES, ignore_errors=True
        )  # also removes assignments whose source is gone
        shutil.copytree(fresh, EXERCISES)
    WRITTEN.parent.mkdir(exist_ok=True)
    WRITTEN.write_text(json.dumps(hashes(EXERCISES), indent=1))
    print(f"exercises/: {', '.join(slugs())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
