"""The command: ``python -m grading ASSIGNMENT`` (``make grade``)."""

import argparse
import os
import sys
import warnings
from pathlib import Path

from sqlalchemy.exc import SAWarning

from grading import storage
from grading.batch import Options, grade_all
from grading.course import Course, Refusal
from grading.plugins import RunCells
from grading.runner import sandbox


@storage.private_files()
def main(arguments: list[str] | None = None) -> int:
    """Grade, and return 0 if all is graded, 1 if some need another try, 2 if it cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m grading",
        description="Grade submitted/<learner>/<assignment>/: scores, feedback, a CSV and a JSON.",
        epilog="Exit status: 0 all graded, 1 some need another try, 2 refused.",
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
        "--jobs",
        type=_number,
        default=os.cpu_count() or 1,
        metavar="N",
        help="submissions at a time (by default one for each core)",
    )
    parser.add_argument("--engine", choices=("local", "dask"), default="local", help="who runs it")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="dask's, as tcp://host:8786")
    parser.add_argument("--gpu", action="store_true", help="let submissions use the GPU")
    options = parser.parse_args(arguments)
    try:
        if options.engine == "local":
            sandbox.check()
        course = Course.open(options.course)
        run = RunCells(config=course.config)
        batch = Options(
            jobs=options.jobs,
            engine=options.engine,
            scheduler=options.scheduler,
            force=options.force,
            gpu=options.gpu or run.gpu,
            limits=run.limits(),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)  # nbgrader's own, about its own tables
            done = grade_all(course, options.assignment, options.learner, batch)
    except (Refusal, sandbox.NoSandbox) as refusal:
        print(f"refused: {refusal}", file=sys.stderr)
        return 2
    return 0 if done else 1


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} submissions at a time: at least 1 is needed")
    return number


if __name__ == "__main__":
    sys.exit(main())
