"""Check a command's arguments, and the programs it needs, before anything is installed for it.

``make`` runs this first (``python3.11 tools/run.py tools.ask check 05-rope``), so that a mistyped
name does not cost minutes. Only the standard library is needed.
"""

import shutil
import sys
from pathlib import Path

from tools import start

ROOT = Path(__file__).resolve().parent.parent
# Programs that pip does not install, and the packages of Debian and Ubuntu that have them.
PACKAGES = {"bwrap": "bubblewrap", "chromium": "chromium", "node": "nodejs", "npm": "npm"}
SOURCE, SUBMITTED = "solutions", "submitted"  # as in nbgrader_config.py; a test compares


def lab(name: str) -> str | None:
    """Check that there are exercises; return the one that is named, if any."""
    if not start.slugs():
        raise start.Problem("there is no exercises/ yet: run `make exercises`")
    return start.find(name) if name else None


def check(name: str) -> None:
    """Check that the exercise was started; without a name, that at least one was."""
    start.to_check(name)


def grade(assignment: str, jobs: str) -> None:
    """Check that the assignment exists and was submitted, and that it can be graded here."""
    names = sorted(path.parent.name for path in (ROOT / SOURCE).glob("*/*.ipynb"))
    if assignment not in names:
        raise start.Problem(
            f"there is no assignment {assignment!r} in {SOURCE}/; "
            f"there is: {', '.join(names) or 'none'}"
        )
    number("JOBS", jobs or "1", range(1, 1000))
    if not any((ROOT / SUBMITTED).glob(f"*/{assignment}")):
        raise start.Problem(
            f"nobody has submitted {assignment!r}: there is no "
            f"{SUBMITTED}/NAME/{assignment}/{assignment}.ipynb"
        )
    program("bwrap")


def collect(source: str, roster: str) -> None:
    """Check that the download is there, and the roster if one is named."""
    if not source:
        raise start.Problem("which download? make collect FROM=submissions.zip [ROSTER=roster.csv]")
    for name in filter(None, (source, roster)):
        if not Path(name).exists():
            raise start.Problem(f"there is no {name!r} here")


def hand_back(system: str, template: str) -> None:
    """Check that the system is one of the three, and that the template is there if one is named."""
    if system not in ("canvas", "moodle", "csv"):
        raise start.Problem(f"TO is canvas, moodle or csv, got {system!r}")
    if template and not Path(template).exists():
        raise start.Problem(f"there is no {template!r} here")


def forget(learner: str) -> None:
    """Check that a learner is named."""
    if not learner:
        raise start.Problem("say whose: make forget LEARNER=name (DRY=1 only shows what goes)")


def port(text: str) -> None:
    """Check that this is the number of a port."""
    number("PORT", text, range(1, 65536))


def hub(text: str) -> None:
    """Check the port, and that there is what JupyterHub's proxy needs."""
    port(text)
    program("node")
    program("npm")


def chromium() -> str:
    """The program that makes the PDF and the EPUB."""
    return shutil.which("chromium-browser") or program("chromium")


def program(name: str) -> str:
    """The path of a program.

    Raises:
        start.Problem: if it is not installed; the message says how to get it.
    """
    path = shutil.which(name)
    if path is None:
        raise start.Problem(
            f"there is no {name}: install it (Debian, Ubuntu: apt-get install {PACKAGES[name]})"
        )
    return path


def number(name: str, text: str, among: range) -> None:
    """Check that a setting is a number in a range."""
    if not (text.isascii() and text.isdigit() and int(text) in among):
        raise start.Problem(f"{name} is a number from {among[0]} to {among[-1]}, got {text!r}")


QUESTIONS = {
    each.__name__: each
    for each in (lab, check, collect, grade, hand_back, forget, port, hub, chromium)
}


def main(arguments: list[str]) -> int:
    """Return 0 if all is well, 2 if not."""
    question, *rest = arguments
    try:
        QUESTIONS[question](*rest)
    except start.Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
