"""The loop over submissions: each ends graded, zero with a reason, or to be tried again."""

import fcntl
import hashlib
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from nbformat import NotebookNode
from sqlalchemy.exc import SQLAlchemyError

from grading import intake, record, report
from grading.course import NAME, Course, Refusal, register
from grading.intake import Reject, Submission
from grading.record import GRADED, RETRY, ZERO, Record
from grading.sanitize import rebuild


def grade_all(
    course: Course, assignment: str, wanted: list[str] | None = None, *, force: bool = False
) -> bool:
    """Grade an assignment's submissions and write the CSV.

    Args:
        course: the course.
        assignment: which assignment.
        wanted: whose submissions; None for everybody's.
        force: also what was graded before and has not changed since.

    Returns:
        Whether every submission has its verdict: False if one needs another try.

    Raises:
        Refusal: if there is no such assignment, submission or learner, or another run is going on.
    """
    source = register(course, assignment)
    found = intake.learners(course.submitted, assignment)
    chosen = _choose(course, assignment, found, wanted)
    folder = course.progress(assignment)
    folder.mkdir(parents=True, exist_ok=True)
    rules = course.fingerprint(assignment)
    with _alone(folder / ".lock"):
        start = time.monotonic()
        try:
            for number, learner in enumerate(chosen, 1):
                print(f"[{number}/{len(chosen)}] {_show(learner)}", end="  ", flush=True)
                print(_one(course, assignment, learner, source, rules, force), flush=True)
        except KeyboardInterrupt:
            print("\nstopped; what was graded is kept, run the same command again for the rest")
        cells, table = report.rows(course, assignment, found)
        path = course.root / "reports" / f"grades-{assignment}.csv"
        report.write_csv(path, cells, table)
    print(f"\n{report.summary(table)}\n")
    print(f"{len(chosen)} submissions in {time.monotonic() - start:.1f} s; {path}")
    settled = {row["learner"] for row in table if row["status"] != RETRY}
    return settled >= set(chosen)


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


def _one(
    course: Course, assignment: str, learner: str, source: NotebookNode, rules: str, force: bool
) -> str:
    """Grade one submission, whatever happens, and say how it went."""
    start = time.monotonic()
    if not NAME.fullmatch(learner):
        return "left out: rename the folder (letters, digits, and . @ - _ inside)"
    folder = course.progress(assignment)
    before = record.load(folder, learner)
    got = intake.collect(course.folder("submitted", learner, assignment), learner, assignment)
    fingerprint = hashlib.sha256(f"{rules} {got.digest}".encode()).hexdigest()
    now = Record(learner, RETRY, "grading was interrupted", got.digest, fingerprint, 0.0)
    try:
        if (
            not force
            and before is not None
            and before.fingerprint == fingerprint
            and before.status != RETRY
            and record.stands(course, learner, assignment)
        ):
            return f"unchanged ({before.status})"
        record.save(folder, now)
        replaced = before is not None and before.submission != got.digest
        record.void(course, learner, assignment, replaced=replaced)
        now = _verdict(course, assignment, source, got, now)
    except Exception as error:  # the next submission must not suffer for this one
        now = replace(now, reason=_explain(error))
    seconds = time.monotonic() - start
    try:
        record.save(folder, replace(now, seconds=round(seconds, 2)))
    except OSError as error:
        record.forget(folder, learner)  # none is better than an old one
        return f"{RETRY}: {_explain(error)}"
    return f"{now.status}  {seconds:.1f} s"


def _verdict(
    course: Course, assignment: str, source: NotebookNode, got: Submission, now: Record
) -> Record:
    try:
        if got.data is None:
            raise Reject(got.problem)
        notebook = rebuild(intake.parse(got.data), source)
        record.grade(course, got.learner, assignment, notebook, got.timestamp)
    except Reject as reject:
        record.zero(course, got.learner, assignment, str(reject), got.timestamp)
        return replace(now, status=ZERO, reason=str(reject))
    return replace(now, status=GRADED, reason=got.note)


def _explain(error: Exception) -> str:
    """Say what went wrong without any of the learner's text, which messages may quote."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
    if isinstance(error, SQLAlchemyError):
        return f"the gradebook cannot be used ({getattr(error, 'orig', None) or where})"
    if isinstance(error, OSError) and error.strerror:
        return f"the system refused: {error.strerror} ({where})"
    return f"grading failed ({where})"


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two runs at once would write the same folders."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal("another run is grading this assignment; wait for it to end") from None
        yield


def _show(name: str) -> str:
    """A folder's name that cannot steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in name)
