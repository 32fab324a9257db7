"""The loop over submissions: each ends graded, zero with a reason, or to be tried again."""

import contextlib
import fcntl
import hashlib
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path

from nbformat import NotebookNode
from sqlalchemy.exc import SQLAlchemyError

from grading import engine, faults, intake, record, report
from grading.course import NAME, Course, Refusal, known, register
from grading.execute import RunCells
from grading.intake import Reject
from grading.nursery import NurseryError
from grading.record import GRADED, RETRY, ZERO, Record
from grading.sanitize import put_back, rebuild

MAX_FAULTS = 3  # submissions in a row that the machine keeps from being written down


class Stopped(Exception):
    """The machine lets nothing be written down any more; the message says what mends it."""


@dataclass(frozen=True)
class How:
    """How a batch is run.

    Attributes:
        jobs: submissions at a time.
        engine: ``local`` or ``dask``.
        scheduler: dask's address.
        force: grade also what has not changed since.
        sandbox: False: learners' code runs with the rights of whoever grades.
        gpu: let submissions use the GPU.
    """

    jobs: int = 2
    engine: str = "local"
    scheduler: str | None = None
    force: bool = False
    sandbox: bool = True
    gpu: bool = False


def grade_all(
    course: Course,
    assignment: str,
    wanted: list[str] | None = None,
    how: How | None = None,
    show: report.Progress | None = None,
) -> bool:
    """Grade an assignment's submissions and write the CSV and the JSON summary.

    Code runs on as many submissions at a time as asked for; this process alone writes.

    Args:
        course: the course.
        assignment: which assignment.
        wanted: whose submissions; None for everybody's.
        how: how to run it.
        show: who is told how it goes; the terminal by default.

    Returns:
        Whether every submission has its verdict: False if one needs another try.

    Raises:
        Refusal: if there is no such assignment, submission or learner, another run is going on,
            the engine cannot be used, or what has to be written cannot be.
    """
    how, show = how or How(), show or report.Progress()
    known(course, assignment)
    found = intake.learners(course.submitted, assignment)
    chosen = _choose(course, assignment, found, wanted)
    faults.check(course, assignment)
    with _alone(course.root / "progress" / ".lock"):
        try:
            source = register(course, assignment)
        except Refusal as refusal:
            if said := faults.explain(refusal, course):
                raise Refusal(said) from refusal
            raise
        start = time.monotonic()
        batch = Batch(course, assignment, source, how, show)
        try:
            with engine.executor(how.engine, how.jobs, how.scheduler) as pool:
                batch.run(pool, chosen)
        except KeyboardInterrupt:
            show.stopped()
        except (Stopped, ValueError, OSError) as problem:
            if not batch.begun:
                raise Refusal(faults.explain(problem, course) or str(problem)) from problem
            if isinstance(problem, ValueError):
                raise
            said = faults.explain(problem, course) or str(problem)
            show.wrong(f"stopped: {said}. What was graded is kept.")
        return _report(batch, found, chosen, time.monotonic() - start)


def _report(batch: "Batch", found: list[str], chosen: list[str], seconds: float) -> bool:
    """Write the table, the CSV and the JSON; whether all that were chosen have their verdict."""
    course, assignment = batch.course, batch.assignment
    path = course.root / "reports" / f"grades-{assignment}.csv"
    try:
        cells, table = report.rows(course, assignment, found, batch.unwritten)
        settled = {row["learner"] for row in table if row["status"] != RETRY}
        done = settled >= set(chosen)
        batch.show.table(table, chosen)
        counts = Counter(row["status"] for row in table)
        told = {"assignment": assignment, "done": done, "sandbox": batch.how.sandbox}
        told |= {status: counts[status] for status in (GRADED, ZERO, RETRY)}
        told |= {"submissions": len(table), "run": batch.ran, "seconds": round(seconds, 2)}
        told["spent"] = {name: round(value, 2) for name, value in batch.spent.items()}
        report.write_csv(path, cells, table)
        report.write_json(path.with_suffix(".json"), told)
    except (OSError, SQLAlchemyError) as problem:
        said = faults.explain(problem, course) or _explain(problem, course)
        batch.show.wrong(f"{path.name} is not that of this run: {said}.")
        return False
    batch.show.end(len(chosen), seconds, path)
    return done


class Batch:
    """One run over submissions: code runs elsewhere, and everything is written here.

    Args:
        course: the course.
        assignment: which assignment.
        source: the instructor's notebook.
        how: how to run it.
        show: who is told how it goes.
    """

    def __init__(
        self,
        course: Course,
        assignment: str,
        source: NotebookNode,
        how: How,
        show: report.Progress,
    ):
        self.course, self.assignment, self.source, self.how = course, assignment, source, how
        self.show = show
        self.rules = course.fingerprint(assignment) + ("" if how.sandbox else " no sandbox")
        self.secret = engine.course_secret(course.root)
        self.runner = RunCells(config=course.config)
        self.runner.sandbox = how.sandbox
        self.runner.gpu = how.gpu
        self.stored = engine.Verdicts(course.progress(assignment) / "verdicts")
        self.begun = False
        self.ran = 0
        self.spent: Counter[str] = Counter()  # seconds of this process, by what it does
        self.unwritten: dict[str, str] = {}  # of whom it could not be written down how it ended
        self._faults = 0  # of the machine, in a row

    def run(self, pool: Executor, chosen: list[str]) -> None:
        """Grade these learners' submissions, a few at a time, so that memory stays flat."""
        waiting: dict[Future, tuple] = {}
        self.show.begin(len(chosen))
        try:
            for learner in chosen:
                begun = time.monotonic()
                prepared = self._prepare(learner)
                self.spent["prepare"] += time.monotonic() - begun
                self.begun = True
                if isinstance(prepared, str):
                    self.show.line(_show(learner), prepared)
                    continue
                got, now, notebook, work = prepared
                if work is None or self.stored.get(work["key"]) is not None:
                    self._finish(got, now, notebook, work, None, begun)
                    continue
                try:
                    future = pool.submit(engine.run, work)
                except RuntimeError as problem:
                    raise OSError(f"the engine takes no more work: {problem}") from problem
                waiting[future] = (got, now, notebook, work, begun)
                if len(waiting) >= 2 * max(self.how.jobs, 1) + 2:
                    self._collect(waiting)
            while waiting:
                self._collect(waiting)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise

    def _collect(self, waiting: dict) -> None:
        begun = time.monotonic()
        done = wait(waiting, return_when=FIRST_COMPLETED).done
        self.spent["wait"] += time.monotonic() - begun
        for future in sorted(done, key=lambda future: waiting[future][0].learner):
            got, now, notebook, work, begun = waiting.pop(future)
            self._finish(got, now, notebook, work, future, begun)

    def _prepare(self, learner: str) -> str | tuple:
        """Read a submission and take its old score back; what is to be run of it.

        Returns:
            A word if there is nothing to run, or the submission, its record, its clean notebook
            and its job (None if it can only get zero, or must be tried again).
        """
        if not NAME.fullmatch(learner):
            return "left out: rename the folder (letters, digits, and . @ - _ inside)"
        course, assignment = self.course, self.assignment
        folder = course.progress(assignment)
        before = record.load(folder, learner)
        got = intake.collect(course.folder("submitted", learner, assignment), learner, assignment)
        fingerprint = hashlib.sha256(f"{self.rules} {got.digest}".encode()).hexdigest()
        now = Record(learner, RETRY, "grading was interrupted", got.digest, fingerprint, 0.0)
        try:
            if (
                not self.how.force
                and before is not None
                and before.fingerprint == fingerprint
                and before.status != RETRY
                and record.stands(course, learner, assignment)
            ):
                return f"unchanged ({before.status})"
            record.save(folder, now)
            replaced = before is not None and before.submission != got.digest
            record.void(course, learner, assignment, replaced=replaced)
            if got.data is None:
                raise Reject(got.problem)
            notebook = rebuild(intake.parse(got.data), self.source)
            put_back(notebook, self.source)
            _, work = self.runner.job(notebook, self.source, self.rules, self.secret)
            if self.how.force:
                self.stored.drop(work["key"])
            return got, now, notebook, work
        except Reject as reject:
            return got, replace(now, status=ZERO, reason=str(reject)), None, None
        except Exception as error:  # the next submission must not suffer for this one
            return got, self._failed(now, error), None, None

    def _failed(self, now: Record, error: Exception) -> Record:
        """The record of a submission that has to be tried again."""
        if faults.explain(error, self.course):
            self._faults += 1
        return replace(now, status=RETRY, reason=_explain(error, self.course))

    def _finish(self, got, now: Record, notebook, work, future: Future | None, begun: float):
        """Write down how a submission ended, and say so."""
        start = time.monotonic()
        course, assignment, learner = self.course, self.assignment, got.learner
        folder = course.progress(assignment)
        try:
            if now.status == ZERO:
                record.zero(course, assignment, got, now.reason)
            elif work is not None:
                if future is not None:
                    self.ran += 1
                    self.stored.put(work["key"], future.result())
                notes = self.stored.get(work["key"])["notes"]
                record.grade(course, assignment, got, notebook, self.how)
                marks = [] if self.how.sandbox else ["graded without a sandbox"]
                reason = "; ".join([*filter(None, [got.note]), *marks, *notes])
                now = replace(now, status=GRADED, reason=reason)
        except Exception as error:  # the next submission must not suffer for this one
            now = self._failed(now, error)
        seconds = time.monotonic() - begun
        word = f"{now.status}  {seconds:.1f} s"
        try:
            record.save(folder, replace(now, seconds=round(seconds, 2)))
        except OSError as error:
            now = self._failed(now, error)
            self.unwritten[learner] = now.reason
            word = f"{RETRY}: {now.reason}"
            with contextlib.suppress(OSError):
                record.forget(folder, learner)  # none is better than an old one
        self.spent["write"] += time.monotonic() - start
        self.show.line(_show(learner), word)
        if now.status != RETRY:
            self._faults = 0
        elif self._faults >= MAX_FAULTS:
            raise Stopped(now.reason)


def _choose(
    course: Course, assignment: str, found: list[str], wanted: list[str] | None
) -> list[str]:
    where = f"{course.submitted.name}/<learner>/{assignment}/{assignment}.ipynb"
    if not found:
        held = sorted({path.name for path in course.submitted.glob("*/*") if path.is_dir()})
        raise Refusal(
            f"nobody handed in {assignment!r}: there is no {where}; "
            f"{course.submitted.name}/ holds: {', '.join(map(_show, held)) or 'nothing'}"
        )
    unknown = sorted(set(wanted or []) - set(found))
    if unknown:
        raise Refusal(
            f"no submission {where} of: {', '.join(map(_show, unknown))}; "
            f"there are: {', '.join(map(_show, found))}"
        )
    return sorted(set(wanted)) if wanted else found


def _explain(error: Exception, course: Course) -> str:
    """Say what went wrong without any of the learner's text, which messages may quote."""
    if said := faults.explain(error, course):
        return said
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
    if isinstance(error, NurseryError):
        return f"the code could not be run: {error}"
    if isinstance(error, OSError) and error.strerror:
        return f"the system refused: {error.strerror} ({where})"
    return f"grading failed ({where})"


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two runs at once would write the same folders."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal("another run is grading in this course; wait for it to end") from None
        except OSError as error:
            said = f"{path} cannot be locked ({error.strerror}): put the course on another disk"
            raise Refusal(said) from error
        yield


def _show(name: str) -> str:
    """A folder's name that cannot steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in name)
