"""What the machine refuses: a full disk, a folder that cannot be written, a locked gradebook.

Such a fault is nobody's submission. :func:`check` looks before anything is withdrawn or run;
:func:`explain` says of one that comes later what it is, where, and what mends it. Files that others
read are written in one step (:func:`write`), so a fault leaves the old one or the new one.
"""

import contextlib
import errno
import os
import sqlite3
import tempfile
from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from grading.course import Course, Refusal

ROOM = 64 * 1024  # bytes that must fit into each folder before a batch begins
LOCK_SECONDS = 5.0  # as long as SQLite itself waits
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SHUT = (errno.EROFS, errno.EACCES, errno.EPERM)
OTHER = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ENOLCK)


def write(path: Path, text: str) -> None:
    """Write a file in one step: a reader sees the old one or the new one, never half of it.

    Raises:
        OSError: if it cannot be written; the old file then stands, and no half stays behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def check(course: Course, assignment: str) -> None:
    """See that all can be written that a batch writes.

    Raises:
        Refusal: if not; it names the folder or file, the reason and the remedy.
    """
    directory = course.directory()
    names = ["reports", directory.autograded_directory, directory.feedback_directory]
    gradebook = _file(course)
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
    seen = []
    while error is not None and error not in seen:
        if isinstance(error, (DBAPIError, sqlite3.Error)):
            return _database(str(getattr(error, "orig", None) or error), course)
        if isinstance(error, OSError) and error.errno in FULL + SHUT + OTHER:
            return _system(error, course)
        seen.append(error)
        error = error.__cause__ or error.__context__
    return ""


def _database(said: str, course: Course) -> str:
    path = _file(course)
    name = path.name if path else "the gradebook"
    if "locked" in said:
        return (
            f"{name} is locked: another program holds it (nbgrader, the formgrader, a viewer of "
            "databases); close that, then run the same command again"
        )
    if "full" in said:
        return (
            f"{name} cannot grow ({said}): free some space on the disk of {course.root}, then run "
            "the same command again"
        )
    if "readonly" in said or "unable to open" in said:
        return (
            f"{name} cannot be written ({said}): give yourself the right to write it and its "
            f"folder {path.parent if path else course.root}, then run the same command again"
        )
    return f"{name} cannot be used ({said}): mend it or put back a copy of it"


def _system(error: OSError, course: Course) -> str:
    where = _place(error.filename, course) if error.filename else ""
    said = os.strerror(error.errno)
    if error.errno in FULL:
        where = f"{where}, " if where else ""
        return (
            f"nothing more can be written ({where}{said}): free some space on the disk of "
            f"{course.root} and in {tempfile.gettempdir()}, then run the same command again"
        )
    if error.errno in SHUT:
        where = where or "a folder"
        return (
            f"{where} cannot be written ({said}): give yourself the right to write it, then run "
            "the same command again"
        )
    return f"the system refused{f' {where}' if where else ''}: {said}"


def _place(name: str | bytes | Path, course: Course) -> str:
    """A file's name as it is told: from the course's folder on, and not to steer a terminal."""
    path = Path(os.fsdecode(name))
    if path.is_relative_to(course.root):
        path = path.relative_to(course.root)
    shown = str(path) if path.parts else str(course.root)
    return "".join(character if character.isprintable() else "?" for character in shown)


def _file(course: Course) -> Path | None:
    """The gradebook's file; None if it is kept by a server of databases."""
    url = make_url(course.db_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return course.root / url.database
