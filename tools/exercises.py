"""Make `exercises/` from `solutions/`: the notebooks without solutions and hidden tests.

``python -m tools.exercises`` rewrites the whole folder with nbgrader. The result is the same,
byte for byte, at every run, so it is committed and a test holds it equal to a fresh one.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / "solutions"
EXERCISES = ROOT / "exercises"


def slugs() -> list[str]:
    """The assignments, by the names of their folders in `solutions/`."""
    return sorted(path.parent.name for path in SOLUTIONS.glob("*/*.ipynb"))


def generate(target: Path) -> None:
    """Write the release version of every assignment into the folder `target`.

    Raises:
        RuntimeError: if nbgrader refuses a notebook; the message holds what it said.
    """
    for slug in slugs():
        command = [
            *(sys.executable, "-m", "nbgrader", "generate_assignment", slug, "--no-db", "--force"),
            f"--CourseDirectory.release_directory={target}",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"nbgrader could not make the release of {slug}:\n{done.stderr}")


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch) / "exercises"
        try:
            generate(fresh)
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            return 1
        shutil.rmtree(EXERCISES, ignore_errors=True)  # what has no source any more goes too
        shutil.copytree(fresh, EXERCISES)
    print(f"exercises/: {', '.join(slugs())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
