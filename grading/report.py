"""What the instructor sees: a CSV with every score, and a table."""

import csv
import io
import json
import logging
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from nbgrader.api import Gradebook, MissingEntry

from grading import storage
from grading.course import Course
from grading.storage import GRADED, RETRY, ZERO, load
from grading.submission import printable

# Programs cut a line at other signs than commas, too, and some take signs of full width (as East
# Asian keyboards type them) for the ordinary ones.
FORMULA = re.compile(r"(^|[;|] ?)(?=[=+@\uff1d\uff0b\uff20\uff0d-])")
EMPTY: Mapping[str, str] = MappingProxyType({})


def rows(
    course: Course, assignment: str, learners: list[str], unknown: Mapping[str, str] = EMPTY
) -> tuple[list[str], list[dict]]:
    """The graded cells' names, and one row for each learner.

    Args:
        course: the course.
        assignment: which assignment.
        learners: whose rows.
        unknown: of whom it could not be written down how it ended, and why.

    Returns:
        The names in the notebook's order, and rows with ``learner``, ``score``, ``max_score``, one
        entry per graded cell, ``status``, ``reason``, ``late``, ``timestamp``. Where the status is
        ``retry``, the scores are empty: they are not known.
    """
    result = []
    with Gradebook(course.db_url, course.course_id) as gradebook:
        known = gradebook.find_assignment(assignment)
        cells = [
            cell.name
            for notebook in known.notebooks
            for cell in sorted(
                [*notebook.grade_cells, *notebook.task_cells], key=lambda cell: cell.name
            )
        ]
        for learner in learners:
            record = load(course.progress(assignment), learner)
            row = {"learner": learner, "max_score": known.max_score}
            row |= {"status": RETRY, "reason": unknown.get(learner, "not graded")}
            if record is None or learner in unknown:
                result.append(row)
                continue
            row |= {"status": record.status, "reason": record.reason}
            try:
                submission = gradebook.find_submission(assignment, learner)
            except MissingEntry:
                submission = None
            if submission and record.status in (GRADED, ZERO):
                grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
                penalty = sum(
                    notebook.late_submission_penalty or 0 for notebook in submission.notebooks
                )
                row |= {grade.name: grade.score for grade in grades}
                row["score"] = submission.score - penalty
                by_hand = sorted(grade.name for grade in grades if grade.needs_manual_grade)
                if by_hand:
                    look = f"to be looked at by hand: {', '.join(by_hand)}"
                    row["reason"] = "; ".join(filter(None, [record.reason, look]))
            if submission and submission.timestamp:
                row["timestamp"] = submission.timestamp.isoformat(" ", "seconds")
                if submission.assignment.duedate:
                    row["late"] = "yes" if submission.total_seconds_late else "no"
            result.append(row)
    return cells, result


def write_csv(path: Path, cells: list[str], table: list[dict]) -> None:
    """Write the table in one step."""
    fields = ["learner", "score", "max_score", *cells, "status", "reason", "late", "timestamp"]
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, restval="", lineterminator="\n")
    writer.writeheader()
    for row in table:
        writer.writerow({name: _plain(value) for name, value in row.items()})
    storage.write(path, text.getvalue())


def _plain(value: object) -> object:
    """Text that is no formula to a program for tables, and cannot steer a terminal."""
    if not isinstance(value, str):
        return value
    return FORMULA.sub(r"\1'", printable(value))


def write_json(path: Path, summary: dict) -> None:
    """Write a summary for programs in one step."""
    storage.write(path, json.dumps(summary, indent=1) + "\n")


class Progress:
    """A line for each submission, with how many are done, the rate and the time left."""

    def begin(self, total: int) -> None:
        """There are so many submissions."""
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.bar = sys.stdout.isatty()

    def line(self, learner: str, word: str) -> None:
        """Say how a submission ended."""
        self.done += 1
        end = "\x1b[K\n" if self.bar else "\n"
        print(f"[{self.done}/{self.total}] {learner}  {word}", end=end, flush=True)
        if self.bar:
            print(f"{self.text()}\x1b[K", end="\r" if self.done < self.total else "\n", flush=True)

    def text(self) -> str:
        """How far it is: ``12/40, 2.1 per second, 13 s left``."""
        rate = self.done / max(1e-6, time.monotonic() - self.start)
        filled = round(20 * self.done / max(1, self.total))
        left = (self.total - self.done) / rate if rate else 0.0
        bar = "#" * filled + "." * (20 - filled)
        return f"[{bar}] {self.done}/{self.total}, {rate:.1f} per second, {left:.0f} s left"

    def stopped(self) -> None:
        """Say that the run was interrupted."""
        print("\nstopped; what was graded is kept, run the same command again for the rest")

    def wrong(self, message: str) -> None:
        """Say what the machine refused."""
        print(f"\n{message}", file=sys.stderr)

    def table(self, table: list[dict], chosen: list[str]) -> None:
        """Show how all ended; ``chosen`` are those of this run."""
        print(f"\n{summary(table)}\n")

    def end(self, number: int, seconds: float, path: Path) -> None:
        """Say how many were chosen, how long they took, and where the table is."""
        print(f"{number} submissions in {seconds:.1f} s; {path}")


class Logged(Progress):
    """The same for nbgrader's log, which its command and the formgrader show.

    Args:
        log: nbgrader's.
    """

    def __init__(self, log: logging.Logger):
        self.log = log

    def begin(self, total: int) -> None:
        self.log.info("Grading %d submissions", total)

    def line(self, learner: str, word: str) -> None:
        self.log.info("%s  %s", learner, word)

    def stopped(self) -> None:
        self.log.warning("stopped; what was graded is kept, grade again for the rest")

    def wrong(self, message: str) -> None:
        self.log.error("%s", message)

    def table(self, table: list[dict], chosen: list[str]) -> None:
        for row in table:
            if row["learner"] in chosen:
                tell = self.log.info if row["status"] == GRADED else self.log.warning
                tell("%s", " ".join(summary([row]).splitlines()[1].split()))

    def end(self, number: int, seconds: float, path: Path) -> None:
        self.log.info("%d submissions in %.1f s; %s", number, seconds, path)


def summary(table: list[dict]) -> str:
    """The table as text: learner, score, status, reason."""
    names = [printable(row["learner"]) for row in table]
    width = max([len("learner"), *map(len, names)])
    lines = [f"{'learner':<{width}}  {'score':>11}  status  reason"]
    for name, row in zip(names, table, strict=True):
        shown = "?" if row["status"] == RETRY else f"{row['score']:g}"
        score = f"{shown} / {row['max_score']:g}"
        line = f"{name:<{width}}  {score:>11}  {row['status']:<6}  {row['reason']}"
        lines.append(line.rstrip())
    return "\n".join(lines)
