"""Delete what a course keeps of one learner: ``python -m grading.forget NAME`` (``make forget``).

A learner who withdraws may ask for it. First everything is looked for and listed (with
``--dry-run`` that is all), then it is deleted in an order in which an interrupted run can be
repeated: tables that know a learner by other names (an address, a number of the learning management
system) come before the gradebook, which says what those names are.

A name is taken literally: no patterns, and ``ann`` is not ``ann2``. Other learners' rows stay the
same, byte for byte. The command lists what it cannot reach.
"""

import argparse
import contextlib
import csv
import io
import json
import os
import re
import shutil
import sqlite3
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from nbgrader.api import Gradebook, MissingEntry, Student
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError

from grading import report, storage
from grading.course import Course, Refusal
from grading.submission import printable

ROSTER = "roster.csv"
# Columns by what they hold, in the words of Canvas, Moodle, Gradescope and our own tables.
LOGIN = {"learner", "username", "user name", "login id", "sis login id", "sis user id", "sid"}
LOGIN |= {"student id", "id number"}
NUMBER = {"id", "lms user id"}
PARTICIPANT = {"identifier"}  # Moodle's number of somebody in one assignment
EMAIL = {"email", "e mail", "email address", "e mail address"}
FULL = {"full name", "fullname", "name", "student", "student name"}
FIRST, LAST = {"first name", "firstname"}, {"last name", "lastname", "surname"}
TABLE = re.compile(r"\.(csv|zip)", re.IGNORECASE)  # what .gitignore calls learners' data
ELSEWHERE = (
    "Not reached from here: the learning management system, nbgrader's exchange, backups, mail, "
    "and git, if any of this was ever committed."
)


@dataclass
class Identity:
    """The names by which a learner may be known; all but logins are normalized (:func:`_key`).

    Attributes:
        logins: the name here, and how tables write it; literally.
        emails: addresses.
        numbers: their ids in the learning management system.
        participants: Moodle's numbers of them, one for each assignment.
        names: first and last name, in either order.
        folders: what their files were called in a download, without an extension.
        doubts: tables with a row that may be theirs.
    """

    logins: set[str]
    emails: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    participants: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    doubts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """Something to delete: its line in the list, and the function that deletes it."""

    shown: str
    do: Callable[[], None]


def forget(course: Course, learner: str, *, dry: bool = False) -> tuple[list[str], list[str]]:
    """Delete everything that is kept of a learner.

    Args:
        course: the course.
        learner: the name of their folders, literally.
        dry: only list it.

    Returns:
        What was deleted, or would be, one line each; and tables with a row that may be theirs.

    Raises:
        Refusal: if the name cannot be one, a run is grading, or something cannot be deleted.
    """
    if not learner.strip() or "/" in learner or "\0" in learner or learner.startswith("."):
        raise Refusal(
            f"{printable(learner)!r} is no learner's name: give the name of the folder in "
            f"{course.submitted.name}/"
        )
    try:
        with contextlib.nullcontext() if dry else storage.alone(course.root):
            person = _identity(course, learner)
            steps = _steps(course, learner, person)
            for step in [] if dry else steps:
                step.do()
            return [step.shown for step in steps], person.doubts
    except (OSError, SQLAlchemyError, sqlite3.Error, zipfile.BadZipFile) as error:
        reason = storage.explain(error, course) or printable(str(error))
        raise Refusal(
            f"{reason}. What was deleted before is gone; the same command deletes the rest"
        ) from error


def _steps(course: Course, learner: str, person: Identity) -> list[Step]:
    reports = course.root / "reports"
    tables = [
        path
        for pattern in ("grades-*.csv", "canvas-*.csv", "moodle-*.csv", "csv-*.csv")
        for path in sorted(reports.glob(pattern))
    ]
    # Tables come first: the archives need the numbers that they give.
    edits = [_table(path, person) for path in [*tables, course.root / ROSTER] if path.is_file()]
    steps = [
        _archive(path, person)
        for path in sorted(reports.glob("*-feedback-*.zip"))
        if path.is_file()
    ]
    steps += edits
    names = [*course.assignments(), *(path.name for path in (course.root / "progress").glob("*"))]
    pages = {reports / f"{name}-{learner}.html" for name in names}
    steps += [_removal(course, path, "page") for path in sorted(pages) if os.path.lexists(path)]
    anew = "page, which the next `make report` writes anew"
    steps += [
        _removal(course, path, anew)
        for path in sorted(reports.glob("class-*.html"))
        if path.is_file() and _mentions(path, learner)
    ]
    directory = course.directory()
    kinds = ("submitted", "autograded", "feedback")
    for name in [getattr(directory, f"{kind}_directory") for kind in kinds]:
        path = course.root / name / learner
        if os.path.lexists(path):
            steps.append(_removal(course, path, "folder"))
    steps += _progress(course, learner)
    steps.append(_gradebook(course, learner))
    return [step for step in steps if step]


# --- who


def _key(name: str) -> str:
    """A name in one spelling: letters of one case, single spaces."""
    return " ".join(name.casefold().split())


def _identity(course: Course, learner: str) -> Identity:
    person = Identity({learner, str(report.plain(learner))})
    if "@" in learner:
        person.emails.add(_key(learner))
    with _open(course) as gradebook:
        student = gradebook and _student(gradebook, learner)
        if student:
            first, last = student.first_name or "", student.last_name or ""
            person.emails |= {_key(student.email or "")}
            person.numbers |= {_key(student.lms_user_id or "")}
            person.names |= {
                _key(f"{first} {last}"),
                _key(f"{last}, {first}") * bool(first and last),
            }
            for other in gradebook.students if first or last or student.email else ():
                name = _key(f"{other.first_name or ''} {other.last_name or ''}")
                if other.id != learner and ({name, _key(other.email or "")} - {""}) & (
                    person.names | person.emails
                ):
                    person.doubts.append(
                        f"the learner {printable(other.id)} (same name or address: if it is the "
                        "same person, forget that name too)"
                    )
    for path in (course.root / "progress").glob("*/collected/*.json"):
        if path.name != f"{learner}.json":
            continue
        with contextlib.suppress(OSError, ValueError, AttributeError):
            noted = json.loads(path.read_text(encoding="utf-8"))
            number = person.participants if noted.get("layout") == "moodle" else person.numbers
            number.add(_key(str(noted.get("id") or "")))
            person.names.add(_key(str(noted.get("name") or "")))
            person.folders.add(str(noted.get("folder") or "").removesuffix(".ipynb"))
    for each in (person.emails, person.numbers, person.participants, person.names, person.folders):
        each.discard("")
    return person


# --- tables and archives


def _records(data: str, delimiter: str) -> Iterator[tuple[list[str], str]]:
    """Each record of a CSV: its cells, and its text to the byte."""
    lines = io.StringIO(data, newline="").readlines()
    reader, begin = csv.reader(lines, delimiter=delimiter), 0
    for cells in reader:
        yield cells, "".join(lines[begin : reader.line_num])
        begin = reader.line_num


def _table(path: Path, person: Identity) -> Step | None:
    """The rows of a table that are this learner's; None if there are none."""
    data = path.read_bytes()
    encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        whole = data.decode(encoding)
        first = whole.splitlines()[0] if whole.strip() else ""
        delimiter = max(",;\t", key=first.count)
        records = list(_records(whole, delimiter))
    except (UnicodeDecodeError, csv.Error):
        raise Refusal(
            f"{printable(path.name)} is no CSV that can be read: delete it yourself"
        ) from None
    if not records:
        return None
    header = [re.sub(r"[\W_]+", " ", name).strip().casefold() for name in records[0][0]]
    place = "" if path.name == ROSTER else f"{path.parent.name}/"
    shown = f"{place}{printable(path.name)}"
    rows, doubt = _mine(header, [cells for cells, _ in records[1:]], person)
    if doubt:
        person.doubts.append(
            f"{shown} (a row has their name, and another login, address or number)"
        )
    if not rows:
        return None
    for row in rows:  # an archive may know them by a number that only this table has
        for name, cell in zip(header, records[row + 1][0], strict=False):
            person.participants |= {_number(cell)} if name in PARTICIPANT else set()
    rest = "".join(raw for row, (_, raw) in enumerate(records, -1) if row not in rows)

    def write() -> None:
        with _replacing(path) as file:
            file.write(rest.encode(encoding))

    return Step(f"{shown}: {_count(len(rows), 'row')}", write)


def _number(cell: str) -> str:
    """Moodle's number of a participant, which it writes as "Participant 12"."""
    return _key(cell).removeprefix("participant ")


def _mine(header: list[str], rows: list[list[str]], person: Identity) -> tuple[set[int], bool]:
    """Which rows are this learner's: by login, address or number, or by a name alone.

    A name alone is enough only if exactly one row has it and nothing in that row contradicts it;
    the second value says whether anything does.
    """
    known = (LOGIN, person.logins), (EMAIL, person.emails), (NUMBER, person.numbers)
    known = (*known, (PARTICIPANT, person.participants))

    def cells(row: list[str], columns: set[str]) -> set[str]:
        values = {cell for name, cell in zip(header, row, strict=False) if name in columns}
        return (values if columns is LOGIN else set(map(_number, values))) - {""}

    def full(row: list[str]) -> set[str]:
        parts = {name: cell for name, cell in zip(header, row, strict=False)}
        first = next((parts[name] for name in FIRST if name in parts), "")
        last = next((parts[name] for name in LAST if name in parts), "")
        return {_key(f"{first} {last}"), *(_key(parts[name]) for name in FULL if name in parts)}

    certain = {
        index
        for index, row in enumerate(rows)
        if any(cells(row, columns) & wanted for columns, wanted in known)
    }
    alike = [index for index, row in enumerate(rows) if full(row) & person.names]
    if certain or not alike:
        return certain, False
    others = any(cells(rows[alike[0]], columns) and wanted for columns, wanted in known)
    return (set(), True) if others or len(alike) > 1 else (set(alike), False)


def _archive(path: Path, person: Identity) -> Step | None:
    """The members of an archive of pages that are this learner's; None if there are none."""

    def mine(name: str) -> bool:
        folder = name.split("/")[0]
        numbers = re.search(r"_(\d+)_assignsubmission_file_$", folder)
        number = numbers and numbers[1] in person.participants
        return bool(number) or folder.removesuffix(".html") in person.folders

    with zipfile.ZipFile(path) as archive:
        members = [info for info in archive.infolist() if mine(info.filename)]
    if not members:
        return None
    gone = {info.filename for info in members}

    def write() -> None:
        with _replacing(path) as file, zipfile.ZipFile(path) as old:
            with zipfile.ZipFile(file, "w") as new:
                for info in old.infolist():
                    if info.filename not in gone:
                        new.writestr(info, old.read(info))

    return Step(f"reports/{printable(path.name)}: {_count(len(members), 'page')}", write)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Rewrite a file in one step; it keeps its permissions."""
    with storage.replacing(path) as file:
        yield file
        os.fchmod(file.fileno(), path.stat().st_mode)


# --- folders and records


def _removal(course: Course, path: Path, kind: str) -> Step:
    """A file, a link or a folder with all that is in it; a link is not followed."""
    files = 1
    if path.is_dir() and not path.is_symlink():
        files = sum(len(names) for _, _, names in os.walk(path))

    def remove() -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    shown = printable(str(path.relative_to(course.root)))
    return Step(f"{shown}: {kind}" + f", {_count(files, 'file')}" * (kind == "folder"), remove)


def _progress(course: Course, learner: str) -> Iterator[Step]:
    """Records, verdicts that no other record refers to, and what was replaced or recorded."""
    for folder in sorted((course.root / "progress").glob("*/")):
        record = folder / f"{learner}.json"
        if record.is_file():
            others = [storage.load(folder, path.stem) for path in folder.glob("*.json")]
            used = {each.verdict for each in others if each and each.learner != learner}
            stale = [path for path in folder.glob("verdicts/*.json") if path.stem not in used]
            if stale:
                shown = f"{_shown(course, folder)}/verdicts: {_count(len(stale), 'file')}"
                yield Step(shown, lambda stale=stale: [path.unlink(True) for path in stale])
        for path in (record, folder / f"{learner}.json.part", *sorted(folder.glob("*/"))):
            if path.is_dir():  # replaced/NAME/, collected/NAME.json
                inside = path / learner, path / f"{learner}.json"
                if inside[0].is_dir():
                    yield _removal(course, inside[0], "folder")
                path = inside[1]
            if path.is_file():
                yield _removal(course, path, "record")


def _shown(course: Course, path: Path) -> str:
    return printable(str(path.relative_to(course.root)))


# --- the gradebook


@contextlib.contextmanager
def _open(course: Course) -> Iterator[Gradebook | None]:
    """The gradebook; None if there is none yet (it is not created)."""
    path = storage.gradebook_file(course)
    if path is not None and not path.is_file():
        yield None
        return
    storage.private(course)
    with Gradebook(course.db_url, course.course_id) as gradebook:
        yield gradebook


def _student(gradebook: Gradebook, learner: str) -> Student | None:
    try:
        return gradebook.find_student(learner)
    except MissingEntry:
        return None


def _gradebook(course: Course, learner: str) -> Step | None:
    with _open(course) as gradebook:
        student = gradebook and _student(gradebook, learner)
        if not student:
            return None
        number = len(student.submissions)

    def remove() -> None:
        with _open(course) as gradebook:
            gradebook.remove_student(learner)
            if storage.gradebook_file(course):
                gradebook.db.execute(text("VACUUM"))  # deleted rows stay readable in the file

    return Step(f"the gradebook: the student and {_count(number, 'submission')}", remove)


# --- the command


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def names(course: Course) -> list[str]:
    """The learners of whom anything is kept."""
    names = {path.name for path in course.submitted.glob("*") if path.is_dir()}
    with _open(course) as gradebook:
        if gradebook:
            names |= set(gradebook.db.execute(select(Student.id)).scalars())
    return sorted(names)


def _mentions(path: Path, learner: str) -> bool:
    """Whether a file, or its name, has a learner's name in it."""
    word = rb"(?<![\w.@-])" + re.escape(os.fsencode(learner)) + rb"(?![\w@-]|\.\w)"
    return bool(re.search(word, path.name.encode() + b"\n" + path.read_bytes()))


def mentions(course: Course, learner: str) -> list[str]:
    """Files that name a learner, or may, and are left as they are."""
    left = []
    for path in sorted((course.root / "reports").rglob("*")):
        with contextlib.suppress(OSError):
            if path.is_file() and _mentions(path, learner):
                left.append(_shown(course, path))
    file = storage.gradebook_file(course)
    if file:
        copies = sorted(path for path in file.parent.glob(f"{file.name}?*") if path.is_file())
        left += [f"{printable(path.name)} (a copy of the gradebook)" for path in copies]
    # What an instructor put there: as the pages for instructors have it, or beside the commands.
    yours = [f"{name}/" for name in ("downloads", "downloaded") if (course.root / name).is_dir()]
    for path in sorted(course.root.iterdir()):
        if path.is_file() and path.name != ROSTER and TABLE.search(path.name):
            yours.append(printable(path.name))
    if yours:
        left.append(
            f"{', '.join(yours)} (as you put it there: delete their files and rows in it yourself, "
            "or the next `make collect` of that download brings them back)"
        )
    return left


def _listed(file: str, lines: list[str]) -> bool:
    return any(line.split(": ")[0] == file for line in lines)


@storage.private_files()
def main(arguments: list[str] | None = None) -> int:
    """Forget a learner; return 0 if nothing of them is left, 2 if refused."""
    parser = argparse.ArgumentParser(
        prog="python -m grading.forget", description="Delete what a course keeps of one learner."
    )
    parser.add_argument("learner", help="the name of their folder in submitted/, literally")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be deleted")
    parser.add_argument("--course", type=Path, default=Path.cwd(), metavar="DIR")
    options = parser.parse_args(arguments)
    try:
        course = Course.open(options.course)
        deleted, doubts = forget(course, options.learner, dry=options.dry_run)
        shown = printable(options.learner)
        if deleted:
            print(f"{'Would delete' if options.dry_run else 'Deleted'} what there is of {shown}:")
        else:
            there = ", ".join(map(printable, names(course))) or "nobody"
            print(f"Nothing is kept under the name {shown}; there are: {there}")
        for line in deleted:
            print(f"  {line}")
        left = [*doubts, *mentions(course, options.learner)]
        if options.dry_run:  # the files that would be changed still name the learner
            left = [line for line in left if not _listed(line, deleted)]
        if left:
            print("Left as it is:")
        for line in left:
            print(f"  {line}")
        print(ELSEWHERE)
    except Refusal as refusal:
        print(f"refused: {refusal}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
