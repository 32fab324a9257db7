"""The command: ``python -m grading ASSIGNMENT --trust-submissions`` (``make grade``)."""

import argparse
import os
import sys
import warnings
from pathlib import Path

from sqlalchemy.exc import SAWarning

from grading.batch import grade_all
from grading.course import Course, Refusal

UNSAFE = (
    "Submitted code runs with your rights here: it can read and change your files, the gradebook "
    "and other people's work, and use the network."
)
ASK = (
    f"{UNSAFE}\nGrade only submissions that you trust. If you do, say so: "
    "make grade ASSIGNMENT={assignment} TRUST=1, or --trust-submissions."
)


def main(arguments: list[str] | None = None) -> int:
    """Grade, and return 0 if all is graded, 1 if some need another try, 2 if it cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m grading",
        description="Grade submitted/<learner>/<assignment>/: scores, feedback and a CSV.",
        epilog="Exit status: 0 all graded, 1 some need another try, 2 refused. " + UNSAFE,
    )
    parser.add_argument("assignment", help="the name of a folder in solutions/")
    parser.add_argument("--learner", nargs="+", metavar="NAME", help="grade these learners only")
    parser.add_argument("--force", action="store_true", help="grade what has not changed, too")
    parser.add_argument(
        "--course",
        type=Path,
        default=Path.cwd(),
        metavar="DIR",
        help="the folder with nbgrader_config.py (here by default)",
    )
    parser.add_argument(
        "--trust-submissions",
        action="store_true",
        help="the submissions are known to be harmless; without this the command refuses",
    )
    options = parser.parse_args(arguments)
    if not options.trust_submissions:
        print(ASK.format(assignment=options.assignment), file=sys.stderr)
        return 2
    print(f"No sandbox yet. {UNSAFE}", flush=True)
    mask = os.umask(0o077)
    try:
        course = Course.open(options.course)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, about its own tables
            done = grade_all(course, options.assignment, options.learner, force=options.force)
    except Refusal as refusal:
        print(f"refused: {refusal}", file=sys.stderr)
        return 2
    finally:
        os.umask(mask)
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
