"""What is kept in ``progress/``, and what to do when the machine refuses to store something.

Files that others read are written in one step (:func:`replacing`), so a fault leaves the old one
or the new one. A record (``progress/<assignment>/<learner>.json``) says what was graded, when, and
with what outcome. It is written twice: before grading, as ``retry``, so that an interruption at any
point leaves no outdated verdict in force, and again afterwards. Verdicts are stored under the hash
of what was run: when something else changes (points, dates, settings, text), the scores are
computed again from the stored verdict.

A full disk, a read-only folder or a locked gradebook is never counted against a submission.
:func:`check` looks for these before anything is withdrawn or run; for one that occurs later,
:func:`explain` says what happened, where, and how to fix it.
"""

import contextlib
import errno
import fcntl
import json
import os
import secrets
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from grading.course import Course, Refusal
from grading.runner.job import Verdict
from grading.submission import printable

ROOM = 64 * 1024  # bytes that must fit into each folder before a batch begins
LOCK_SECONDS = 5.0  # as long as SQLite itself waits
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SHUT = (errno.EROFS, errno.EACCES, errno.EPERM)
GRADED, ZERO, RETRY = "graded", "zero", "retry"
EDITION = 1  # of records; those written before there were editions have 0
OTHER = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ENOLCK)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file in one step: a reader sees the old one or the new one, never half of it.

    Yields:
        The new file, open for writing; it takes the old one's place at the end.

    Raises:
        OSError: if it cannot be written; the old file then remains, and no half of the new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def write(path: Path, text: str) -> None:
    """Write a text file in one step (:func:`replacing`)."""
    with replacing(path) as file:
        file.write(text.encode())


@dataclass(frozen=True)
class Record:
    """How one submission ended.

    Attributes:
        learner: whose it is.
        status: ``graded``, ``zero`` (for a reason that is the submission's own) or ``retry``
            (for a reason that is not: the score is not known yet).
        reason: why it is zero or has to be tried again; a note otherwise.
        submission: the hash of what was handed in: of its cells, or (edition 0) of the file's
            bytes and its time.
        fingerprint: the hash of all that the score and the page depend on.
        seconds: how long it took.
        verdict: the key of its verdict; empty if nothing was run.
        change: how the last grading changed the score, and why.
        facts: what the score was made of when it was last known (:mod:`grading.changes`).
        edition: the form of this record.
    """

    learner: str
    status: str
    reason: str
    submission: str
    fingerprint: str
    seconds: float
    verdict: str = ""
    change: str = ""
    facts: dict = field(default_factory=dict)
    edition: int = 0


def load(folder: Path, learner: str) -> Record | None:
    """The record of a learner, or None if there is none that can be read."""
    try:
        return Record(**json.loads((folder / f"{learner}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def save(folder: Path, record: Record) -> None:
    """Write a record in one step: a reader sees the old one or the new one, never half of it."""
    write(folder / f"{record.learner}.json", json.dumps(asdict(record), indent=1))


def forget(folder: Path, learner: str) -> None:
    """Remove a record: the submission counts as never graded."""
    (folder / f"{learner}.json").unlink(missing_ok=True)


class Verdicts:
    """Verdicts in a folder, one file each, by the key of their job. None of them is pickled."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def get(self, key: str) -> Verdict | None:
        try:
            return Verdict(**json.loads(self._path(key).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def put(self, key: str, verdict: Verdict) -> None:
        write(self._path(key), verdict.to_json())

    def drop(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Nobody else writes this course's results meanwhile.

    Raises:
        Refusal: if a run is grading, or the course's disk knows no locks.
    """
    path = root / "progress" / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal("another run is grading in this course; wait for it to end") from None
        except OSError as error:
            raise Refusal(
                f"{path} cannot be locked ({error.strerror}): put the course on another disk"
            ) from error
        yield


def course_secret(root: Path) -> bytes:
    """The course's secret, made when it is first asked for; only its owner can read it."""
    path = root / "progress" / ".secret"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        # Whole or not at all; and of two who make one, both use the first.
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".secret-") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            with contextlib.suppress(FileExistsError):
                os.link(file.name, path)
    return path.read_bytes()


def check(course: Course, assignment: str) -> None:
    """See that all can be written that a batch writes.

    Raises:
        Refusal: if not; it names the folder or file, the reason and what to do.
    """
    directory = course.directory()
    names = ["reports", directory.autograded_directory, directory.feedback_directory]
    gradebook = gradebook_file(course)
    folders = [course.progress(assignment), *[course.root / name for name in names]]
    for folder in [*folders, *([gradebook.parent] if gradebook else [])]:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(ROOM))
        except OSError as error:
            error.filename = folder
            raise Refusal(explain(error, course)) from error
    try:
        tempfile.gettempdir()
    except OSError as error:
        raise Refusal(f"no temporary folder can be written: {error.strerror}") from error
    if gradebook and gradebook.is_file():
        try:
            gradebook.open("r+b").close()  # SQLite reads on where it may not write
            with contextlib.closing(sqlite3.connect(gradebook, timeout=LOCK_SECONDS)) as database:
                database.execute("begin immediate")
                database.rollback()
        except (OSError, sqlite3.Error) as error:
            raise Refusal(explain(error, course)) from error


def explain(error: BaseException, course: Course) -> str:
    """What the machine refused, where, and the remedy; empty if the error is of another kind.

    Args:
        error: what was raised; an error that it came from counts too.
        course: the course; its files are named from its folder on.
    """
    checked = []
    while error is not None and error not in checked:
        if isinstance(error, (DBAPIError, sqlite3.Error)):
            return _database(str(getattr(error, "orig", None) or error), course)
        if isinstance(error, OSError) and error.errno in FULL + SHUT + OTHER:
            return _system(error, course)
        checked.append(error)
        error = error.__cause__ or error.__context__
    return ""


def _database(reason: str, course: Course) -> str:
    path = gradebook_file(course)
    name = path.name if path else "the gradebook"
    if "locked" in reason:
        return (
            f"{name} is locked: another program holds it (nbgrader, the formgrader, a viewer of "
            "databases); close that, then run the same command again"
        )
    if "full" in reason:
        return (
            f"{name} cannot grow ({reason}): free some space on the disk of {course.root}, then "
            "run the same command again"
        )
    if "readonly" in reason or "unable to open" in reason:
        return (
            f"{name} cannot be written ({reason}): give yourself the right to write it and its "
            f"folder {path.parent if path else course.root}, then run the same command again"
        )
    return f"{name} cannot be used ({reason}): mend it or put back a copy of it"


def _system(error: OSError, course: Course) -> str:
    where = _place(error.filename, course) if error.filename else ""
    reason = os.strerror(error.errno)
    if error.errno in FULL:
        where = f"{where}, " if where else ""
        return (
            f"nothing more can be written ({where}{reason}): free some space on the disk of "
            f"{course.root} and in {tempfile.gettempdir()}, then run the same command again"
        )
    if error.errno in SHUT:
        where = where or "a folder"
        return (
            f"{where} cannot be written ({reason}): give yourself the right to write it, then run "
            "the same command again"
        )
    return f"the system refused{f' {where}' if where else ''}: {reason}"


def _place(name: str | bytes | Path, course: Course) -> str:
    """A file's name as it is told: from the course's folder on, and not to steer a terminal."""
    path = Path(os.fsdecode(name))
    if path.is_relative_to(course.root):
        path = path.relative_to(course.root)
    shown = str(path) if path.parts else str(course.root)
    return printable(shown)


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Let nobody else read the files that are made meanwhile; as a decorator, in a function."""
    mask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(mask)


def private(course: Course) -> None:
    """Let nobody else read the gradebook; nbgrader's own commands make it readable to everybody."""
    path = gradebook_file(course)
    with contextlib.suppress(OSError):  # another owner's
        if path is not None and not path.is_symlink():
            path.chmod(0o600)


def gradebook_file(course: Course) -> Path | None:
    """The gradebook's file; None if it is kept by a server of databases."""
    url = make_url(course.db_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return course.root / url.database
