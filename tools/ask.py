"""Say what is wrong with a command's arguments before anything is installed for it.

``make`` asks here first (``python3.11 tools/run.py tools.ask check 05-rope``): the answer to a
mistyped name takes no minutes. Only the standard library is needed.
"""

import shutil
import sys
from pathlib import Path

from tools import start

ROOT = Path(__file__).resolve().parent.parent
SOURCE, SUBMITTED = "solutions", "submitted"  # as in nbgrader_config.py; a test compares


def lab(name: str) -> None:
    """Insist that there are exercises and, if one is named, that it is among them."""
    if not start.slugs():
        raise start.Problem("there is no exercises/ yet: run `make exercises`")
    if name:
        start.find(name)


def check(name: str) -> None:
    """Insist that the exercise was started; without a name, that any was."""
    start.to_check(name)


def grade(assignment: str, jobs: str) -> None:
    """Insist that there is such an assignment, and that somebody handed it in."""
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


def port(text: str) -> None:
    """Insist on a port's number."""
    number("PORT", text, range(1, 65536))


def chromium() -> str:
    """The program that makes the PDF and the EPUB."""
    for name in ("chromium", "chromium-browser"):
        if program := shutil.which(name):
            return program
    raise start.Problem(
        "there is no Chromium: install it (Debian, Ubuntu: apt-get install chromium)"
    )


def number(name: str, text: str, among: range) -> None:
    """Insist on a number in a range."""
    if not (text.isascii() and text.isdigit() and int(text) in among):
        raise start.Problem(f"{name} is a number from {among[0]} to {among[-1]}, got {text!r}")


QUESTIONS = {"lab": lab, "check": check, "grade": grade, "port": port, "chromium": chromium}


def main(arguments: list[str]) -> int:
    """Return 0 if there is nothing to say, 2 if there is."""
    question, *rest = arguments
    try:
        QUESTIONS[question](*rest)
    except start.Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
