"""The loop over submissions: each ends graded, zero with a reason, or to be tried again."""

import contextlib
import hashlib
import hmac
import json
import os
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from nbformat import NotebookNode
from sqlalchemy.exc import SQLAlchemyError

from grading import changes, evaluate, mistakes, report, storage, submission
from grading.changes import Change
from grading.course import NAME, Course, Refusal, known, register
from grading.evaluate import Outcome, Standing, Task
from grading.gradebook import Book, GradebookEntry
from grading.notebook import Cell as LearnerCell
from grading.notebook import (
    Reject,
    Step,
    answer_names,
    defined_names,
    graded_by_hand,
    is_foreign,
    plan,
    rebuild,
)
from grading.runner import pool, sandbox
from grading.runner.forkserver import ForkServerError
from grading.runner.job import Cell, Job, Limits
from grading.storage import EDITION, GRADED, RETRY, ZERO, Record
from grading.submission import Submission, printable

MAX_NAME = 200  # bytes of a learner's name, which becomes a file's with a suffix
FOREIGN = "no answer cell of this exercise is in it: perhaps it is another exercise's notebook"
MAX_FAULTS = 3  # submissions in a row whose results could not be stored


class Stopped(Exception):
    """Nothing can be stored any more; the message says what to do."""


@dataclass(frozen=True)
class Options:
    """How a batch is run.

    Attributes:
        jobs: submissions at a time.
        engine: ``local`` or ``dask``.
        scheduler: dask's address.
        force: grade also what has not changed since.
        gpu: let submissions use the GPU.
        limits: what each submission may use.
    """

    jobs: int = 2
    engine: str = "local"
    scheduler: str | None = None
    force: bool = False
    gpu: bool = False
    limits: Limits = field(default_factory=Limits)


def grade_all(
    course: Course,
    assignment: str,
    wanted: list[str] | None = None,
    options: Options | None = None,
    show: report.Progress | None = None,
) -> bool:
    """Grade an assignment's submissions and write the CSV and the JSON summary.

    Code runs on as many submissions at a time as asked for; this process alone writes.

    Args:
        course: the course.
        assignment: which assignment.
        wanted: whose submissions; None for everybody's.
        options: how to run it.
        show: where progress is reported; the terminal by default.

    Returns:
        Whether every submission has its verdict: False if one needs another try.

    Raises:
        Refusal: if there is no such assignment, submission or learner, another run is going on,
            the engine cannot be used, or what has to be written cannot be.
    """
    options, show = options or Options(), show or report.Progress()
    known(course, assignment)
    if place := sandbox.shown(course.root):
        raise Refusal(
            f"submitted code would see {course.root}: it sees all of {place}, where Python is. "
            "Move the course to another place"
        )
    learners = submission.learners(course.submitted, assignment)
    chosen = _choose(course, assignment, learners, wanted)
    storage.check(course, assignment)
    with storage.alone(course.root):
        try:
            source = register(course, assignment)
        except Refusal as refusal:
            if reason := storage.explain(refusal, course):
                raise Refusal(reason) from refusal
            raise
        start = time.monotonic()
        batch = Batch(course, assignment, source, options, show)
        try:
            with (
                Book.open(course, assignment) as book,
                pool.executor(options.engine, options.jobs, options.scheduler) as workers,
            ):
                batch.run(workers, book, chosen)
        except KeyboardInterrupt:
            show.stopped()
        except (Stopped, ValueError, OSError, SQLAlchemyError) as problem:
            reason = storage.explain(problem, course) or str(problem)
            if not batch.begun:
                raise Refusal(reason) from problem
            if isinstance(problem, ValueError):
                raise
            show.wrong(f"stopped: {reason}. What was graded is kept.")
        return _report(batch, learners, chosen, time.monotonic() - start)


def _report(batch: "Batch", learners: list[str], chosen: list[str], seconds: float) -> bool:
    """Write the table, the CSV and the JSON; return whether all chosen ones have a verdict."""
    course, assignment = batch.course, batch.assignment
    path = course.root / "reports" / f"grades-{assignment}.csv"
    try:
        cells, table = report.rows(course, assignment, learners, batch.unwritten, batch.rules)
        settled = {row["learner"] for row in table if row["status"] != RETRY}
        done = settled >= set(chosen)
        batch.show.table(table, chosen)
        batch.show.changes(batch.changed)
        batch.show.older([row["learner"] for row in table if row.get("older")])
        counts = Counter(row["status"] for row in table)
        summary = {"assignment": assignment, "done": done}
        summary |= {status: counts[status] for status in (GRADED, ZERO, RETRY)}
        summary |= {"submissions": len(table), "run": batch.ran, "changed": len(batch.changed)}
        summary["seconds"] = round(seconds, 2)
        summary["processor"] = round(time.process_time() - batch.start, 3)
        summary["spent"] = {name: round(value, 2) for name, value in batch.spent.items()}
        report.write_csv(path, cells, table)
        report.write_json(path.with_suffix(".json"), summary)
    except (OSError, SQLAlchemyError) as problem:
        batch.show.wrong(f"{path.name} is not that of this run: {_explain(problem, course)}.")
        return False
    batch.show.end(len(chosen), seconds, path)
    return done


@dataclass
class Entry:
    """A submission on its way through a batch.

    Attributes:
        submission: what was handed in.
        record: how it ended, as far as that is known.
        cells: of the notebook, or why there are none.
        kept: what the gradebook had of it, before its score was withdrawn.
        standing: what the gradebook says of it besides the tests.
        cached: whether the verdict was there already.
        begun: when its grading began.
    """

    submission: Submission
    record: Record
    cells: list[LearnerCell] | Reject
    earlier: GradebookEntry
    standing: Standing
    cached: bool = False
    begun: float = field(default_factory=time.monotonic)


class Batch:
    """One run over submissions: code runs in other processes, and this one writes the results.

    Args:
        course: the course.
        assignment: which assignment.
        source: the instructor's notebook.
        options: how to run it.
        show: where progress is reported.
    """

    def __init__(
        self,
        course: Course,
        assignment: str,
        source: NotebookNode,
        options: Options,
        show: report.Progress,
    ):
        self.course, self.assignment, self.source = course, assignment, source
        plan(rebuild([], source), source)  # what fails from now on is a submission's own fault
        self.options, self.show = options, show
        self.rules = course.rules(assignment)
        self.rules["limits"] = repr((asdict(options.limits), options.gpu))
        self.tests = changes.tests(source)
        self.secret = storage.course_secret(course.root)
        self.records = course.progress(assignment)
        self.verdicts = storage.Verdicts(self.records / "verdicts")
        self.named = mistakes.Hints(config=course.config)
        self.bank: mistakes.Bank | None = None
        self.begun = False
        self.ran = 0
        self.start = time.process_time()  # of this process, which alone writes
        self.spent: Counter[str] = Counter()  # seconds of this process, by what it does
        self.changed: list[Change] = []
        self.unwritten: dict[str, str] = {}  # learners whose outcome could not be stored, and why
        self._faults = 0  # of the machine, in a row

    def run(self, workers: Executor, book: Book, chosen: list[str]) -> None:
        """Grade these learners' submissions, a few at a time, so that memory use stays constant."""
        self.book = book
        if self.named.on_feedback:
            self.bank = mistakes.bank(
                self.course, self.assignment, self.source, workers, self.options.limits
            )
        waiting: dict[Future[Outcome], Entry] = {}
        self.show.begin(len(chosen))
        try:
            for learner in chosen:
                with self._clock("prepare"):
                    entry = self._read(learner)
                    future = self._submit(workers, entry) if entry else None
                self.begun = True
                if future is not None:
                    waiting[future] = entry
                elif entry is not None:
                    self._finish(entry, None)
                if len(waiting) >= 2 * self.options.jobs + 2:
                    self._collect(waiting)
            while waiting:
                self._collect(waiting)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise

    def _read(self, learner: str) -> Entry | None:
        """A submission, its earlier score withdrawn; None if there is nothing to do."""
        shown = printable(learner)
        if not NAME.fullmatch(learner) or len(os.fsencode(learner)) > MAX_NAME:
            reason = "left out: rename the folder (letters, digits, and . @ - _ inside)"
            self.show.line(shown, reason)
            return None
        folder = self.course.folder("submitted", learner, self.assignment)
        handed_in = submission.collect(folder, learner, self.assignment)
        before = storage.load(self.records, learner)
        record = Record(learner, RETRY, "grading was interrupted", "", "", 0.0, edition=EDITION)
        # Until scores by hand of an earlier file are gone, the record is that file's.
        earlier = record
        if before:
            same = {name: getattr(before, name) for name in ("submission", "edition", "facts")}
            earlier = replace(record, **same)
        entry = Entry(handed_in, earlier, [], GradebookEntry(), Standing())
        try:
            entry.cells = _cells(handed_in)
            work = submission.content(entry.cells, handed_in, self.source)
            graded = self.book.entries(learner).get(learner)
            entry.earlier = graded or GradebookEntry()
            name = self.book.name(learner)
            entry.standing = self.book.standing(graded, handed_in.timestamp, name)
            if before and graded and before.status != RETRY and not before.facts:
                known = {"points": graded.points, "penalty": graded.penalty}
                earlier = replace(earlier, facts=known)
            replaced = before is not None and _replaced(before, entry, work)
            if replaced:
                entry.standing = replace(entry.standing, manual={}, extra={}, comments={})
            fingerprint = self._fingerprint(entry, work)
            if (
                before is not None
                and before.fingerprint == fingerprint
                and before.status != RETRY
                and not self.options.force
                and graded is not None
                and self.book.has_files(learner)
            ):
                self.show.line(shown, f"unchanged ({before.status})")
                return None
            storage.save(self.records, earlier)
            self.book.withdraw(learner, replaced=replaced)
        except Exception as error:  # the next submission must not suffer for this one
            entry.record = self._failed(earlier, error)
        else:
            entry.record = replace(
                record,
                reason="",
                submission=work,
                fingerprint=fingerprint,
                facts=earlier.facts,
            )
        return entry

    def _fingerprint(self, entry: Entry, work: str) -> str:
        """The hash of all that a score and a page depend on."""
        handed_in = entry.submission
        own = [work, str(handed_in.timestamp), handed_in.note, handed_in.secret]
        parts = [self.rules, own, changes.standing(entry.standing)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _submit(self, workers: Executor, entry: Entry) -> Future[Outcome] | None:
        """Have a submission evaluated; None if it is to be tried again anyway."""
        if entry.record.reason:
            return None
        try:
            work = self._task(entry)
        except Reject as reject:
            entry.record = replace(entry.record, status=ZERO, reason=str(reject))
            about = entry.standing.about(entry.submission.learner)
            refusal = (self.assignment, str(reject), self.book.max_score, self.course.config, about)
            work = None
        except Exception as error:
            entry.record = self._failed(entry.record, error)
            return None
        try:
            if work is None:
                return workers.submit(evaluate.refuse, *refusal)
            return workers.submit(evaluate.evaluate, work)
        except RuntimeError as problem:
            raise OSError(f"the engine takes no more work: {problem}") from problem

    def _task(self, entry: Entry) -> Task:
        """The task for a submission.

        Raises:
            Reject: if it can only get zero.
        """
        if isinstance(entry.cells, Reject):
            raise entry.cells
        try:
            notebook = rebuild(entry.cells, self.source)
            steps = plan(notebook, self.source)
        except (Reject, MemoryError):
            raise
        except Exception as error:  # the instructor's own notebook has passed these steps already
            raise _unreadable(error) from error
        if is_foreign(entry.cells, self.source):
            notebook.metadata["note"] = FOREIGN
        job = self._job(steps)
        # What is run, and what runs it: nothing else affects the outcome.
        text = f"{self.rules['running']} {job.to_json()}"
        key = hashlib.sha256(text.encode()).hexdigest()
        entry.record = replace(entry.record, verdict=key)
        if self.options.force:
            self.verdicts.drop(key)
        verdict = self.verdicts.get(key)
        entry.cached = verdict is not None
        return Task(
            learner=entry.submission.learner,
            assignment=self.assignment,
            notebook=json.dumps(notebook),
            places=tuple(step.place for step in steps),
            job=job,
            verdict=verdict,
            checksums=self.book.checksums,
            max_score=self.book.max_score,
            standing=entry.standing,
            config=self.course.config,
            hints=self._hints(notebook, steps),
        )

    def _hints(self, notebook: NotebookNode, steps: list[Step]) -> mistakes.Wanted | None:
        """What is needed to name a submission's mistakes on its page; None to name none."""
        if self.bank is None:
            return None
        what = mistakes.job(steps, self.source, self.bank.checks, self.options.limits)
        sources = mistakes.sources(notebook, self.bank.tasks)
        return mistakes.Wanted(self.bank, what, sources, self.named.book)

    def _job(self, steps: list[Step]) -> Job:
        """The run of a notebook; the tests' random draws follow from its code and the secret."""
        cells = job_cells(steps)
        text = repr([asdict(cell) for cell in cells]).encode()
        return Job(
            cells=cells,
            names=tuple(answer_names(self.source)),
            salt=hmac.new(self.secret, text, "sha256").hexdigest(),
            limits=self.options.limits,
            pictures=graded_by_hand(self.source),
            gpu=self.options.gpu,
        )

    def _collect(self, waiting: dict[Future[Outcome], Entry]) -> None:
        with self._clock("wait"):
            done = wait(waiting, return_when=FIRST_COMPLETED).done
        for future in sorted(done, key=lambda future: waiting[future].submission.learner):
            self._finish(waiting.pop(future), future)

    def _finish(self, entry: Entry, future: Future[Outcome] | None) -> None:
        """Store how a submission ended, and report it."""
        with self._clock("write"):
            record = entry.record
            try:
                if future is not None:
                    record = self._write(entry, future.result())
            except Exception as error:  # the next submission must not suffer for this one
                record = self._failed(record, error)
            record = self._save(record, time.monotonic() - entry.begun, cached=entry.cached)
        if record.status != RETRY:
            self._faults = 0
        elif self._faults >= MAX_FAULTS:
            raise Stopped(record.reason)

    def _write(self, entry: Entry, outcome: Outcome) -> Record:
        """Write an outcome into the gradebook; the record to be saved after it."""
        zero = entry.record.status == ZERO
        if not zero and not entry.cached:
            self.ran += 1
            self.verdicts.put(entry.record.verdict, outcome.verdict)
        self.book.write(entry.submission, outcome, zero=zero, seen=_seen(entry, outcome))
        facts = self._facts(entry, outcome, zero=zero)
        change = changes.compare(entry.record.learner, entry.record.facts, facts)
        if change:
            self.changed.append(change)
        record = replace(entry.record, facts=facts, change=str(change or ""))
        if zero:
            return record
        notes = [*filter(None, [entry.submission.note]), *outcome.verdict.notes]
        if is_foreign(entry.cells, self.source):
            notes.append(FOREIGN)
        return replace(record, status=GRADED, reason="; ".join(notes))

    def _facts(self, entry: Entry, outcome: Outcome, *, zero: bool) -> dict:
        """What the score is made of; the next grading compares its own facts with these."""
        auto = dict.fromkeys(self.book.max_points, 0.0) if zero else outcome.scores
        given = entry.standing
        return changes.standing(given) | {
            "points": {
                name: evaluate.counted(given, name, points) for name, points in auto.items()
            },
            "max": self.book.max_points,
            "penalty": outcome.penalty or 0.0,
            "file": entry.record.submission,
            "tests": self.tests,
            "rules": self.rules,
        }

    def _save(self, record: Record, seconds: float, *, cached: bool) -> Record:
        """Save a record and show it; what cannot be saved is to be tried again."""
        word = f"{record.status}{', not run again' if cached else f'  {seconds:.1f} s'}"
        try:
            storage.save(self.records, replace(record, seconds=round(seconds, 2)))
        except OSError as error:
            record = self._failed(record, error)
            self.unwritten[record.learner] = record.reason
            word = f"{RETRY}: {record.reason}"
            with contextlib.suppress(OSError):
                storage.forget(self.records, record.learner)  # better than an outdated one
        self.show.line(printable(record.learner), word)
        return record

    def _failed(self, record: Record, error: Exception) -> Record:
        """The record of a submission that has to be tried again."""
        if storage.explain(error, self.course):
            self._faults += 1
        return replace(record, status=RETRY, reason=_explain(error, self.course))

    @contextlib.contextmanager
    def _clock(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.spent[name] += time.monotonic() - start


def job_cells(steps: list[Step]) -> tuple[Cell, ...]:
    """A plan's cells in the runner's words."""
    return tuple(
        Cell(
            step.source,
            step.role,
            tuple(defined_names(step.source)) if step.role == "given" else (),
        )
        for step in steps
    )


def _cells(handed_in: Submission) -> list[LearnerCell] | Reject:
    """The cells of a submission, or why there are none."""
    try:
        return submission.cells(handed_in)
    except Reject as reject:
        return reject
    except MemoryError:
        raise
    except Exception as error:
        return _unreadable(error)


def _unreadable(error: Exception) -> Reject:
    """The reason given for a notebook that fails in an unforeseen way."""
    kind = type(error).__name__
    return Reject(f"The notebook cannot be read ({kind}). {submission.REMEDY}")


def _replaced(before: Record, entry: Entry, work: str) -> bool:
    """Whether different work was handed in since a record was written."""
    if not before.submission:  # it failed before it was read
        return False
    if before.edition:
        return before.submission != work
    # That hash took in the time of submission, which may have been corrected.
    times = [(entry.earlier.timestamp, ""), (None, ""), (None, submission.OLD_NO_DATE)]
    versions = [replace(entry.submission, timestamp=when, note=note) for when, note in times]
    return before.submission not in [each.digest for each in (entry.submission, *versions)]


def _seen(entry: Entry, outcome: Outcome) -> set[str]:
    """Cells whose manual score was given for the same outcome as now."""
    earlier = entry.earlier
    if not entry.cached:
        return set()
    return {
        name
        for name in entry.standing.manual
        if name not in earlier.open and earlier.auto.get(name) == outcome.scores.get(name)
    }


def _choose(
    course: Course, assignment: str, learners: list[str], wanted: list[str] | None
) -> list[str]:
    where = f"{course.submitted.name}/<learner>/{assignment}/{assignment}.ipynb"
    if not learners:
        there = sorted({path.name for path in course.submitted.glob("*/*") if path.is_dir()})
        raise Refusal(
            f"nobody handed in {assignment!r}: there is no {where}; "
            f"{course.submitted.name}/ holds: {', '.join(map(printable, there)) or 'nothing'}"
        )
    unknown = sorted(set(wanted or []) - set(learners))
    if unknown:
        raise Refusal(
            f"no submission {where} of: {', '.join(map(printable, unknown))}; "
            f"there are: {', '.join(map(printable, learners))}"
        )
    return sorted(set(wanted)) if wanted else learners


def _explain(error: Exception, course: Course) -> str:
    """Say what went wrong without any of the learner's text, which messages may quote."""
    if reason := storage.explain(error, course):
        return reason
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
    if isinstance(error, ForkServerError):
        return f"the code could not be run: {error}"
    if isinstance(error, OSError) and error.strerror:
        return f"the system refused: {error.strerror} ({where})"
    return f"grading failed ({where})"
