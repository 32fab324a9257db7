"""What a class got wrong: one page for the instructor, ``reports/class-ASSIGNMENT.html``.

``python -m grading.class_report ASSIGNMENT`` (``make report``) takes the scores from the gradebook
and runs each graded submission once more, in the sandbox, so that all its checks report
(:mod:`grading.mistakes`). Submissions whose checks of a task report the same are one group. The
page loads nothing and runs no script. Of a submission it shows code and messages, escaped and cut.
"""

import argparse
import json
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from nbformat import NotebookNode
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from grading import mistakes, report, storage, submission
from grading.course import NAME, Course, Refusal, known
from grading.mistakes import EMPTY, Bank, Check, Hints, Name, Task
from grading.notebook import Reject, name_of, plan, rebuild
from grading.plugins import RunCells
from grading.runner import pool, sandbox
from grading.runner.forkserver import ForkServerError
from grading.runner.job import Job, Limits
from grading.storage import GRADED, ZERO
from grading.submission import printable

MAX_LINES, MAX_WIDTH = 40, 120  # of an example
MAX_NAMES = 60  # of a group
BARS = 10  # of the distribution of scores
MISSING = "is not defined"  # what a check reports of a function that is not there
TRIED_BY = 3  # learners who must have tried a check before it is called suspicious
POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'"


@dataclass(frozen=True)
class Diagnosed:
    """A submission whose checks have reported.

    Attributes:
        learner: whose it is.
        results: what each check reports; empty for one that passes.
        sources: the code of the cells that the learner writes, by name.
    """

    learner: str
    results: dict[Check, str]
    sources: dict[str, str]


@dataclass(frozen=True)
class Group:
    """Learners for whom all checks of a task report the same, and not all pass.

    Attributes:
        learners: their names.
        name: the mistake, if it is known.
        link: to the section that treats it; empty if there is none.
        failed: the checks that fail, and what they report.
        passed: how many checks of the task pass.
        blank: whether nothing was filled in.
        example: one learner's code.
        author: of the example.
    """

    learners: list[str]
    name: Name | None
    link: str
    failed: list[tuple[Check, str]]
    passed: int
    blank: bool
    example: str
    author: str


@dataclass
class Rate:
    """How many of those who tried a task pass one of its checks, and whether that is suspicious."""

    check: Check
    passed: int
    tried: int
    flag: str = ""


@dataclass
class Part:
    """What the page shows of a task."""

    number: int
    title: str
    points: float
    mean: float | None
    full: int
    some: int
    none: int
    blank: int
    rates: list[Rate] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)


# --- collect


def diagnose(
    course: Course, assignment: str, source: NotebookNode, workers: Executor, limits: Limits
) -> tuple[list[Diagnosed], dict[str, str]]:
    """Run the checks of all graded submissions, so that each of them reports.

    What was run before is read from ``progress/ASSIGNMENT/diagnoses/NAME.json``.

    Returns:
        The submissions, and of whom there is no report, and why.
    """
    wanted = mistakes.checks(source)
    tasks = mistakes.tasks(source)
    folder = course.progress(assignment) / "diagnoses"
    runs, missing, done = [], {}, []
    for learner in submission.learners(course.submitted, assignment):
        record = storage.load(course.progress(assignment), learner)
        if not NAME.fullmatch(learner) or record is None or record.status != GRADED:
            status = record.status if record else "not graded"
            missing[learner] = record.reason if record and record.status == ZERO else status
            continue
        handed_in = submission.collect(
            course.folder("submitted", learner, assignment), learner, assignment
        )
        try:
            notebook = rebuild(submission.cells(handed_in), source)
            steps = plan(notebook, source)
        except Reject as reject:
            missing[learner] = f"handed in again since it was graded: {reject}"
            continue
        job = mistakes.job(steps, source, wanted, limits)
        run = workers.submit(_reports, job, folder / f"{learner}.json")
        runs.append((learner, mistakes.sources(notebook, tasks), run))
    for learner, sources, run in runs:
        try:
            reports = dict(zip(wanted, run.result(), strict=True))
        except ForkServerError as problem:
            missing[learner] = f"the code could not be run: {problem}"
        else:
            done.append(Diagnosed(learner, reports, sources))
    return done, missing


def _reports(job: Job, path: Path) -> list[str]:
    """What each check of a diagnosis reports; it is run unless the file has it already."""
    key = mistakes.key(job)
    if stored := mistakes.cached(path).get(key):
        return stored
    reports = mistakes.diagnose(job)
    storage.write(path, json.dumps({key: reports}, indent=1))
    return reports


# --- what the page says


def parts(
    source: NotebookNode, bank: Bank, those: list[Diagnosed], rows: list[dict], book: str
) -> list[Part]:
    """The page's tasks: scores, rates and groups.

    Args:
        source: the instructor's notebook.
        bank: the known mistakes.
        those: submissions whose checks have reported.
        rows: of the table of scores.
        book: the book's address; may be empty.
    """
    worth = {
        name_of(cell): float(cell.metadata.nbgrader.points)
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    named = {each.learner: mistakes.names(bank, each.results, each.sources) for each in those}
    made = []
    for number, task in enumerate(bank.tasks):
        ours = [check for check in bank.checks if check.task == number]
        points = sum(worth[name] for name in task.tests)
        # a cell that waits for manual grading has no result yet
        scores = [
            sum(row.get(name) or 0.0 for name in task.tests)
            for row in rows
            if row["status"] == GRADED
        ]
        tried = [each for each in those if not _blank(each, task, ours)]
        part = Part(
            number=number + 1,
            title=mistakes.plain(task.title),
            points=points,
            mean=sum(scores) / len(scores) if scores else None,
            full=sum(score >= points for score in scores),
            some=sum(0 < score < points for score in scores),
            none=sum(score <= 0 for score in scores),
            blank=len(those) - len(tried),
            rates=[_rate(check, tried) for check in ours],
            groups=_groups(task, number, ours, those, named, book),
        )
        made.append(part)
    return made


def _blank(each: Diagnosed, task: Task, ours: list[Check]) -> bool:
    """Whether nothing was filled in, or nothing of the task was handed in at all."""
    if any(name in each.sources for name in task.answers):
        return bool(ours) and all(each.results[check] == EMPTY for check in ours)
    return bool(ours) and all(MISSING in each.results[check] for check in ours)


def _rate(check: Check, tried: list[Diagnosed]) -> Rate:
    rate = Rate(check, sum(not each.results[check] for each in tried), len(tried))
    if len(tried) >= TRIED_BY and check.hidden:
        if rate.passed == 0:
            rate.flag = "nobody passes"
        elif rate.passed == rate.tried:
            rate.flag = "everybody passes"
    return rate


def _groups(
    task: Task,
    number: int,
    ours: list[Check],
    those: list[Diagnosed],
    named: Mapping[str, Mapping[int, Name]],
    book: str,
) -> list[Group]:
    """The groups of a task, the largest first; what was not filled in comes last."""
    same: dict[tuple, list[Diagnosed]] = {}
    for each in those:
        pattern = tuple(each.results[check] for check in ours)
        pattern = (EMPTY,) * len(ours) if _blank(each, task, ours) else pattern
        if any(pattern):
            # Code that may only pass on another task's failure has no name, and its own group.
            name = named[each.learner].get(number)
            same.setdefault((pattern, name), []).append(each)
    made = []
    for (pattern, name), members in same.items():
        # The shortest is the quickest to read.
        shown = min(members, key=lambda each: (len(_code(each, task)), each.learner))
        made.append(
            Group(
                learners=sorted(each.learner for each in members),
                name=name,
                link=name.link(book) if name else "",
                failed=[
                    (check, message)
                    for check, message in zip(ours, pattern, strict=True)
                    if message
                ],
                passed=sum(not message for message in pattern),
                blank=_blank(shown, task, ours),
                example=_cut(_code(shown, task)),
                author=shown.learner,
            )
        )
    return sorted(made, key=lambda group: (group.blank, -len(group.learners), group.learners))


def _code(each: Diagnosed, task: Task) -> str:
    return "\n\n".join(each.sources[name] for name in task.answers if name in each.sources)


def _cut(code: str) -> str:
    """Code as far as an example shows it, without its docstrings, which are the release's."""
    code = re.sub(r'^[ \t]+"""[^"]*?"""[ \t]*\n', "", code, flags=re.MULTILINE)
    lines = code.split("\n")
    lines = [tame(line[:MAX_WIDTH]) + ("…" if len(line) > MAX_WIDTH else "") for line in lines]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"… {len(lines) - MAX_LINES} more lines"]
    return "\n".join(lines)


def tame(text: str) -> str:
    """Text without control characters and marks of direction, for a page."""
    return printable(text.replace("\t", "    "), keep="\n")


def failure(message: str) -> str:
    """What a check reports, without what it tried and the exception's name."""
    message = re.sub(r"^\w+: ", "", message, count=1)
    message = re.sub(r"^Tried: .*?\.\n", "", message, count=1, flags=re.DOTALL)
    return tame(message[:600]) or "It stopped without a message."


def histogram(rows: list[dict]) -> list[tuple[str, int]]:
    """The distribution of scores: ranges of points, and how many learners are in each."""
    scores = [row["score"] for row in rows if row["status"] == GRADED]
    best = max((row["max_score"] for row in rows), default=0.0)
    if not best:
        return []
    width = max(1, -(-int(best) // BARS))
    last = int(best) // width
    counts = Counter(min(last, max(0, int(score // width))) for score in scores)
    made = []
    for bar in range(last + 1):
        low, high = bar * width, min(best, (bar + 1) * width - 1)
        made.append((f"{low:g}–{high:g}" if low < high else f"{low:g}", counts[bar]))
    return made


def topics(made: list[Part]) -> list[tuple[Part, Group]]:
    """What to discuss: mistakes that have a name or that several learners share, largest first."""
    shared = [
        (part, group)
        for part in made
        for group in part.groups
        if not group.blank and (group.name or len(group.learners) > 1)
    ]
    return sorted(shared, key=lambda each: (-len(each[1].learners), each[0].number))


def page(
    assignment: str, made: list[Part], rows: list[dict], missing: Mapping[str, str], banked: int
) -> str:
    """The page, as HTML."""
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"failure": failure, "tame": tame, "plain": mistakes.plain}
    graded = [row for row in rows if row["status"] == GRADED]
    scores = sorted(row["score"] for row in graded)
    bars = histogram(rows)
    return environment.get_template("class_report.html.j2").render(
        assignment=assignment,
        policy=POLICY,
        parts=made,
        graded=len(graded),
        mean=sum(scores) / len(scores) if scores else None,
        median=_median(scores),
        best=max((row["max_score"] for row in rows), default=0.0),
        missing={printable(name): tame(reason) for name, reason in missing.items()},
        bars=bars,
        most=max((count for _, count in bars), default=0) or 1,
        topics=topics(made),
        suspicious=[
            (part, rate) for part in made for rate in part.rates if rate.flag == "nobody passes"
        ],
        easy=[
            (part, rate) for part in made for rate in part.rates if rate.flag == "everybody passes"
        ],
        max_names=MAX_NAMES,
        banked=banked,
    )


def _median(scores: list[float]) -> float | None:
    if not scores:
        return None
    half = len(scores) // 2
    return scores[half] if len(scores) % 2 else (scores[half - 1] + scores[half]) / 2


# --- the command


def write(course: Course, assignment: str, jobs: int = 2) -> tuple[Path, list[Part]]:
    """Write the page of an assignment.

    Raises:
        Refusal: if there is no such assignment, or nobody has been graded.
    """
    known(course, assignment)
    if place := sandbox.shown(course.root):
        raise Refusal(f"submitted code would see {course.root}: it sees all of {place}")
    source = course.notebook(assignment)
    learners = [
        name
        for name in submission.learners(course.submitted, assignment)
        if storage.load(course.progress(assignment), name)
    ]
    if not learners:
        raise Refusal(
            f"nobody has been graded for {assignment!r}: run `make grade ASSIGNMENT={assignment}`"
        )
    limits, hints = RunCells(config=course.config).limits(), Hints(config=course.config)
    book = hints.book
    if not book and (course.root / "_build" / "html" / "book").is_dir():
        book = "../_build/html/book"  # seen from reports/
    with pool.executor("local", jobs) as workers:
        bank = mistakes.bank(course, assignment, source, workers, limits)
        those, missing = diagnose(course, assignment, source, workers, limits)
    _, rows = report.rows(course, assignment, learners)
    made = parts(source, bank, those, rows, book)
    banked = sum(len(same) for same in bank.patterns.values())
    path = course.root / "reports" / f"class-{assignment}.html"
    storage.write(path, page(assignment, made, rows, missing, banked))
    return path, made


@storage.private_files()
def main(arguments: list[str] | None = None) -> int:
    """Write the page, and return 0; 2 if it cannot be written."""
    parser = argparse.ArgumentParser(
        prog="python -m grading.class_report",
        description="What the class got wrong: a page in reports/, from graded submissions.",
    )
    parser.add_argument("assignment", help="the name of a folder in solutions/")
    parser.add_argument("--course", type=Path, default=Path.cwd(), metavar="DIR")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    options = parser.parse_args(arguments)
    course = None
    try:
        sandbox.check()
        course = Course.open(options.course)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)
            path, made = write(course, options.assignment, max(1, options.jobs))
    except (Refusal, sandbox.NoSandbox, ForkServerError) as problem:
        print(f"refused: {problem}", file=sys.stderr)
        return 2
    except (OSError, SQLAlchemyError) as problem:
        reason = storage.explain(problem, course) if course else ""
        print(f"refused: {reason or type(problem).__name__}", file=sys.stderr)
        return 2
    for part, group in topics(made)[:5]:
        what = group.name.about if group.name else "the same result, without a name"
        print(f"{len(group.learners)} × {part.title}: {what}")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
