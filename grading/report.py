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

from grading import changes, storage
from grading.changes import Change
from grading.course import Course
from grading.gradebook import Book
from grading.storage import GRADED, RETRY, ZERO, load
from grading.submission import printable

# Spreadsheets also split lines at characters other than commas, and some treat full-width
# characters (as East Asian keyboards type them) like the ordinary ones.
FORMULA = re.compile(r"(^|[;|] ?)(?=[=+@\uff1d\uff0b\uff20\uff0d-])")
EMPTY: Mapping[str, str] = MappingProxyType({})


def rows(
    course: Course,
    assignment: str,
    learners: list[str],
    unknown: Mapping[str, str] = EMPTY,
    rules: Mapping[str, str] = EMPTY,
) -> tuple[list[str], list[dict]]:
    """The graded cells' names, and one row for each learner.

    Args:
        course: the course.
        assignment: which assignment.
        learners: whose rows.
        unknown: learners whose outcome could not be stored, and why.
        rules: those that hold now, to mark rows that are by older ones; none to mark nothing.

    Returns:
        The graded cells' names, sorted, and rows with ``learner``, ``score``, ``max_score``, one
        entry per graded cell, ``penalty``, ``status``, ``reason``, ``change``, ``late``,
        ``timestamp``, and ``older`` where a row is by older rules. ``score`` is what the cells
        make without ``penalty``, and ``late`` is what the penalty was decided by. Where the
        status is ``retry``, the scores are empty: they are not known.
    """
    result = []
    with Book.open(course, assignment) as book:
        everyone = book.entries()
        for learner in learners:
            record = load(course.progress(assignment), learner)
            row = {"learner": learner, "max_score": book.max_score}
            row |= {"status": RETRY, "reason": unknown.get(learner, "not graded")}
            if record is None or learner in unknown:
                result.append(row)
                continue
            row |= {"status": record.status, "reason": record.reason, "change": record.change}
            graded = everyone.get(learner)
            if graded is None:
                result.append(row)
                continue
            given = book.standing(graded, graded.timestamp)
            late, due = given.late, given.due
            if record.status in (GRADED, ZERO):
                row |= graded.points
                row["score"] = sum(graded.points.values()) - graded.penalty
                row["penalty"] = graded.penalty
                by_hand = ", ".join(sorted(graded.open))
                look = by_hand and f"to be looked at by hand: {by_hand}"
                row["reason"] = "; ".join(filter(None, [record.reason, look]))
                if rules and (older := changes.outdated(record, rules, given)):
                    row["older"] = True
                    row["change"] = "; ".join(filter(None, [older, record.change]))
                if facts := record.facts:  # what was decided then, whatever the dates are by now
                    late, due = facts["late"], facts["due"]
            if graded.timestamp:
                row["timestamp"] = graded.timestamp.isoformat(" ", "seconds")
                if due:
                    row["late"] = "yes" if late else "no"
            result.append(row)
        return [*book.max_points], result


def write_csv(path: Path, cells: list[str], table: list[dict]) -> None:
    """Write the table in one step."""
    fields = ["learner", "score", "max_score", *cells, "penalty", "status", "reason", "change"]
    fields += ["late", "timestamp"]
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in table:
        writer.writerow({name: plain(value) for name, value in row.items()})
    storage.write(path, text.getvalue())


def plain(value: object) -> object:
    """Text that no spreadsheet takes for a formula, and that cannot steer a terminal."""
    if not isinstance(value, str):
        return value
    return FORMULA.sub(r"\1'", printable(value))


def write_json(path: Path, summary: dict) -> None:
    """Write a summary for programs in one step."""
    storage.write(path, json.dumps(summary, indent=1) + "\n")


class Progress:
    """A line for each submission, with how many are done, the rate and the time left."""

    def begin(self, total: int) -> None:
        """Set the number of submissions."""
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.bar = sys.stdout.isatty()

    def line(self, learner: str, word: str) -> None:
        """Report how a submission ended."""
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
        """Report what the machine refused."""
        print(f"\n{message}", file=sys.stderr)

    def table(self, table: list[dict], chosen: list[str]) -> None:
        """Show how all ended; ``chosen`` are those of this run."""
        print(f"\n{summary(table)}\n")

    def changes(self, changed: list[Change]) -> None:
        """Report whose score changed, and why."""
        if changed:
            print(f"Scores that changed\n{moved(changed)}\n")

    def older(self, learners: list[str]) -> None:
        """Report whose rows were computed by older rules."""
        if learners:
            print(f"{older(learners)}\n")

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

    def changes(self, changed: list[Change]) -> None:
        for each in changed:
            self.log.warning("%s: score changed from %s", printable(each.learner), each)

    def older(self, learners: list[str]) -> None:
        if learners:
            self.log.warning("%s", older(learners))

    def end(self, number: int, seconds: float, path: Path) -> None:
        self.log.info("%d submissions in %.1f s; %s", number, seconds, path)


def moved(changed: list[Change]) -> str:
    """Scores that changed as text: learner, before, after, reason."""
    names = [printable(each.learner) for each in changed]
    width = max([len("learner"), *map(len, names)])
    lines = [f"{'learner':<{width}}  before   after  reason"]
    for name, each in zip(names, changed, strict=True):
        lines.append(f"{name:<{width}}  {each.before:>6g}  {each.after:>6g}  {each.reason}")
    return "\n".join(lines)


def older(learners: list[str]) -> str:
    """A line that names up to ten learners whose rows are by older rules."""
    names = ", ".join(map(printable, learners[:10])) + ", ..." * (len(learners) > 10)
    return f"Not graded again since something changed (see the column `change`): {names}"


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
