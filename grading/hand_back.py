r"""Grades and feedback in a system's form: ``python -m grading.hand_back`` (``make return``).

The system's own export is the template: its rows, columns, order, encoding and every cell but the
grades stay as they are, so that the system finds its learners by its own numbers. What comes out:

======= ========================================================================================
canvas  ``reports/canvas-ASSIGNMENT.csv`` (the gradebook's import), and the pages under the names of
        the downloaded files, which Canvas's upload of submissions finds by their two numbers
        (``infer_comment_context_from_filename``)
moodle  ``reports/moodle-ASSIGNMENT.csv`` (the grading worksheet), and the pages in the folders of
        the download, ``Full name_PARTICIPANT_assignsubmission_file_/ASSIGNMENT.html``, as "Upload
        multiple feedback files in a zip" wants them (``feedback/file/importziplib.php``)
csv     ``reports/csv-ASSIGNMENT.csv``: any table of learners with one column more, or, without a
        template, a table of its own
======= ========================================================================================

Only learners with a verdict get a grade; those who have to be graded again are named. Nothing of a
submission but its score and its page goes into these files.
"""

import argparse
import csv
import io
import os
import re
import stat
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import MissingEntry

from grading import report, roster, storage, submission
from grading.collect import (
    collected,
    has_gradebook,
    open_gradebook,
    same_assignment,
    students,
)
from grading.course import Course, Refusal, known
from grading.roster import Owner, Person, Table, key
from grading.storage import RETRY
from grading.submission import printable

SYSTEMS = ("canvas", "moodle", "csv")
EXPORTS = {
    "canvas": "the gradebook's export (Grades, Export)",
    "moodle": "the assignment's grading worksheet (Download grading worksheet)",
}
MAX_PAGE = 200 * 2**20  # bytes of a feedback page
ID = re.compile(r" \(\d+\)$")  # what Canvas adds to the name of an assignment
# A spreadsheet would take such a cell for a formula; a number or Moodle's lone "-" is none.
FORMULA = re.compile(r"\s*[=+@\uff1d\uff0b\uff20\uff0d\t\r]|\s*-(?=.*[^\d.,% -])")


def _named(one: Person, row: Person) -> bool:
    """Whether two people have the same name and no differing addresses."""
    other = one.email and row.email and one.email.casefold() != row.email.casefold()
    return bool(row.full) and key(one.full) == key(row.full) and not other


# What identifies a learner of the gradebook with a row of a template, in this order.
SAME: tuple[Callable[[Person, Person], bool], ...] = (
    lambda one, row: bool(row.email) and one.email.casefold() == row.email.casefold(),
    lambda one, row: bool(row.login) and one.learner == row.login,
    lambda one, row: bool(row.lms_id) and one.lms_id == row.lms_id and _named(one, row),
    _named,
)


@dataclass
class Returned:
    """What was written, and what was not.

    Attributes:
        files: the files.
        grades: how many grades they hold.
        pages: how many feedback pages.
        without: rows of the template that got no grade, and why.
        unplaced: learners with a grade who have no row, and why.
        notes: further remarks for the instructor.
    """

    files: list[Path] = field(default_factory=list)
    grades: int = 0
    pages: int = 0
    without: list[str] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def hand_back(
    course: Course,
    assignment: str,
    system: str,
    template: Path | None = None,
    column: str | None = None,
    *,
    scale: bool = False,
) -> Returned:
    """Write the files of one assignment for one system; each whole or not at all.

    Args:
        course: the course.
        assignment: which assignment.
        system: ``canvas``, ``moodle`` or ``csv``.
        template: that system's export.
        column: the column for the grades; found by the assignment's name if None.
        scale: convert points where the system counts another maximum.

    Raises:
        Refusal: if nothing was graded, or the template cannot take the grades.
    """
    scores = _scores(course, assignment)
    result = Returned()
    target = course.root / "reports" / f"{system}-{assignment}.csv"
    if template is None and system != "csv":
        raise Refusal(
            f"TO={system} needs TEMPLATE=, {EXPORTS[system]}: its numbers lead back to its rows"
        )
    people: dict[str, Person] = {}
    if template is None:
        data = _own(course, assignment, scores, result)
    else:
        table = roster.read(template)
        if system != "csv" and table.kind != system:
            raise Refusal(
                f"{printable(template.name)} is not {EXPORTS[system]}: it looks "
                f"like {'another table' if table.kind == 'own' else f'an export of {table.kind}'}"
            )
        people = _rows(course, assignment, table)
        data = _fill(table, system, assignment, column, scores, people, scale, result)
    try:
        with storage.replacing(target) as file:
            file.write(data)
        result.files.append(target)
        if system != "csv":
            _pages(course, assignment, system, scores, people, result)
    except OSError as error:
        raise Refusal(storage.explain(error, course) or str(error)) from error
    return result


def _scores(course: Course, assignment: str) -> dict[str, dict]:
    """The table's rows by learner: as ``reports/grades-ASSIGNMENT.csv`` has them."""
    learners = submission.learners(course.submitted, assignment)
    graded = f"first run: make grade ASSIGNMENT={assignment}"
    if not learners or not has_gradebook(course):
        raise Refusal(f"nothing of {assignment} was graded yet; {graded}")
    try:
        with open_gradebook(course):
            _, rows = report.rows(course, assignment, learners)
    except MissingEntry:
        raise Refusal(f"nothing of {assignment} was graded yet; {graded}") from None
    return {row["learner"]: row for row in rows}


def _rows(course: Course, assignment: str, table: Table) -> dict[str, Person]:
    """Each learner's row in the template, by the name of the learner's folder.

    A row is recognized by what was recorded when the download was collected (Moodle's number of a
    participant, with the name), or else by the gradebook's address, number and name.
    """
    people = roster.people(table)
    enrolled = students(course, assignment)
    if table.kind == "moodle":
        numbers = [(person.full, person.participant) for person in people]
        same_assignment(assignment, numbers, enrolled, printable(table.path.name))
    result: dict[str, Person] = {}
    for student in enrolled:
        noted = collected(course, assignment, student.learner)
        if noted.get("layout") != table.kind or table.kind not in ("moodle", "canvas"):
            continue
        owner = Owner(noted.get("name", ""), id=noted.get("id", ""), kind=table.kind)
        same, _ = roster.find(owner, people) if owner.id else (None, "")
        if same is not None:
            result[student.learner] = same
    several = Counter(person.row for person in result.values())
    result = {name: person for name, person in result.items() if several[person.row] == 1}
    for test in SAME:
        rest = [one for one in enrolled if one.learner not in result]
        rows = {person.row for person in result.values()}
        pairs = [
            (one, person)
            for one in rest
            for person in people
            if person.row not in rows and test(one, person)
        ]
        # A row that fits two learners, or a learner who fits two rows, is left out.
        by_learner = Counter(one.learner for one, _ in pairs)
        by_row = Counter(person.row for _, person in pairs)
        for one, person in pairs:
            if by_learner[one.learner] == by_row[person.row] == 1:
                result[one.learner] = person
    return result


def _fill(
    table: Table,
    system: str,
    assignment: str,
    column: str | None,
    scores: dict[str, dict],
    people: dict[str, Person],
    scale: bool,
    result: Returned,
) -> bytes:
    """The template with the grades in it."""
    place, more = _column(table, system, assignment, column)
    maximum = max((row["max_score"] for row in scores.values()), default=0.0)
    comma = _comma(table, place)
    owners = {person.row: learner for learner, person in people.items()}
    persons = {person.row: person for person in roster.people(table)}
    changes: dict[int, dict[int, str]] = {}
    for index, row in enumerate(table.rows):
        if more is not None and "Points Possible" in row[0] and table.kind == "canvas":
            changes[index] = {place: _number(maximum, comma)}
        if index not in persons:
            continue
        learner = owners.get(index)
        shown = persons[index].full or persons[index].email or persons[index].login
        score, reason = _score(scores, learner)
        if score is not None and system == "moodle" and _locked(table, row):
            score, reason = None, "Moodle says that this grade cannot be changed"
        if score is None:
            result.without.append(f"{shown}: {reason}")
            continue
        most = _maximum(table, row, place) if more is None else None
        if most is not None and abs(most - maximum) > 1e-9:
            if not scale or most <= 0 or maximum <= 0:
                raise Refusal(
                    f"{system.capitalize()} counts {most:g} points in the column "
                    f"{table.header[place]!r}, and {assignment} has {maximum:g}: set that maximum "
                    "there and export again, or convert the points with SCALE=1"
                )
            score *= most / maximum
        changes.setdefault(index, {})[place] = _number(score, comma)
        result.grades += 1
    placed = set(owners.values())
    for learner, row in scores.items():
        if learner not in placed:
            word = (
                "has a grade"
                if row["status"] != RETRY
                else f"has to be graded again: {row['reason']}"
            )
            result.unplaced.append(f"{printable(learner)}: {word}, and no row in the template")
    formulas = [
        (index, column, cell)
        for index, row in enumerate(table.rows)
        for column, cell in enumerate(row)
        if FORMULA.match(cell)
    ]
    if system == "csv":  # matters to spreadsheets only
        for index, column, cell in formulas:
            changes.setdefault(index, {}).setdefault(column, f"'{printable(cell)}")
    elif formulas:
        result.notes.append(
            f"{len(formulas)} cells of the template begin like a formula and are kept as they "
            "were: do not open the file in a spreadsheet"
        )
    return table.render(changes, more)


def _score(scores: dict[str, dict], learner: str | None) -> tuple[float | None, str]:
    if learner is None or learner not in scores:
        return (
            None,
            "nothing of theirs was collected",
        )
    row = scores[learner]
    if row["status"] == RETRY or row.get("score") is None:
        return None, f"has to be graded again: {row['reason']}"
    return row["score"], ""


def _column(
    table: Table, system: str, assignment: str, column: str | None
) -> tuple[int, str | None]:
    """Where the grades go: a column's index, and its name if it is new."""
    names = table.header
    if column is None and system == "moodle":
        return table.columns["grade"], None
    wanted = column or assignment
    same = [
        index
        for index, name in enumerate(names)
        if wanted in (name, ID.sub("", name))
        or (column is None and key(ID.sub("", name)) == key(wanted))
    ]
    if len(same) == 1:
        place = same[0]
        if place in table.columns.values() and table.header[place] != "Grade":
            raise Refusal(f"the column {wanted!r} says who a learner is: grades cannot go there")
        if any("read only" in row[place] for row in table.rows[:3]):
            raise Refusal(f"Canvas takes no grades in the column {names[place]!r}: it is read only")
        return place, None
    if system == "csv" and not same:
        return len(names), wanted
    shown = ", ".join(printable(name)[:60] for name in names if name.strip())
    reason = "several columns are" if same else "no column is"
    raise Refusal(
        f"{reason} called {wanted!r} in {printable(table.path.name)}; name one with COLUMN=: "
        f"{shown}"
    )


def _maximum(table: Table, row: list[str], place: int) -> float | None:
    """The system's maximum for the assignment, if the table gives one."""
    if table.kind == "moodle":
        names = [name.casefold() for name in table.header]
        text = row[names.index("maximum grade")] if "maximum grade" in names else ""
    elif table.kind == "canvas":
        text = next((row[place] for row in table.rows[:3] if "Points Possible" in row[0]), "")
    else:
        text = ""
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None


def _locked(table: Table, row: list[str]) -> bool:
    names = [name.casefold() for name in table.header]
    place = names.index("grade can be changed") if "grade can be changed" in names else None
    return place is not None and row[place].strip().casefold() == "no"


def _comma(table: Table, place: int) -> bool:
    """Whether numbers are written with a decimal comma here."""
    cells = [row[place] for row in table.rows if place < len(row)]
    cells += [cell for row in table.rows[:3] for cell in row]
    commas = sum(bool(re.fullmatch(r"\d+,\d{1,2}", cell.strip())) for cell in cells)
    points = sum(bool(re.fullmatch(r"\d+\.\d+", cell.strip())) for cell in cells)
    return commas > points


def _number(score: float, comma: bool) -> str:
    text = f"{score:.2f}"
    return text.replace(".", ",") if comma else text


def _own(course: Course, assignment: str, scores: dict[str, dict], result: Returned) -> bytes:
    """A table made without a template: learners, points and status."""
    enrolled = {person.learner: person for person in students(course, assignment)}
    text = io.StringIO()
    fields = ["learner", "last name", "first name", "email", "score", "max_score", "status", "late"]
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    for learner, row in scores.items():
        person = enrolled.get(learner, Person())
        score, reason = _score(scores, learner)
        cells = {"learner": learner, "last name": person.last, "first name": person.first}
        cells |= {"email": person.email, "score": "" if score is None else _number(score, False)}
        cells |= {"max_score": f"{row['max_score']:g}", "status": row["status"]}
        cells["late"] = row.get("late", "")
        writer.writerow({name: report.plain(cell) for name, cell in cells.items()})
        if score is None:
            result.without.append(f"{printable(learner)}: {reason}")
        else:
            result.grades += 1
    return text.getvalue().encode()


# --- pages


def _pages(
    course: Course,
    assignment: str,
    system: str,
    scores: dict[str, dict],
    people: dict[str, Person],
    result: Returned,
) -> None:
    """The feedback pages as one zip, under the names by which the system knows them."""
    target = course.root / "reports" / f"{system}-feedback-{assignment}.zip"
    names: set[str] = set()
    with storage.replacing(target) as file, zipfile.ZipFile(file, "w") as archive:
        for learner in sorted(scores):
            if scores[learner]["status"] == RETRY:
                continue
            name = _name(course, assignment, system, learner, people.get(learner))
            page = _page(course, assignment, learner)
            if name is None or page is None or name in names:
                reason = "no page" if page is None else "no name in the download, or not one alone"
                result.notes.append(f"{printable(learner)}: not in the zip ({reason})")
                continue
            names.add(name)
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            archive.writestr(info, page)
            result.pages += 1
    result.files.append(target)


def _name(
    course: Course, assignment: str, system: str, learner: str, person: Person | None
) -> str | None:
    """The name of a learner's page in the zip; None if the system could not place it."""
    noted = collected(course, assignment, learner)
    folder = noted.get("folder", "") if noted.get("layout") == system else ""
    if "/" in folder or "\\" in folder or folder != printable(folder):
        folder = ""
    if system == "canvas":
        stem = folder.rpartition(".")[0]
        return f"{stem}.html" if stem else None
    if person is not None and person.participant:
        # The row is the newer of the two: the number belongs to this assignment.
        full = re.sub(r"[/\\:*?\"<>|_]", " ", person.full)
        return f"{full}_{person.participant}_assignsubmission_file_/{assignment}.html"
    return f"{folder}/{assignment}.html" if folder else None


def _page(course: Course, assignment: str, learner: str) -> bytes | None:
    """A learner's feedback page; None if there is none that can be read."""
    path = course.folder("feedback", learner, assignment) / f"{assignment}.html"
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return file.read(MAX_PAGE)
    except OSError:
        return None


# --- the command


def tell(result: Returned, root: Path) -> str:
    """A report of what was written and what was not, for a terminal."""
    lines = [f"{result.grades} grades" + (f", {result.pages} pages" if result.pages else "")]
    lines += [f"  {path.relative_to(root)}" for path in result.files]
    for title, entries in (
        ("in the template, without a grade", result.without),
        ("with a grade, but not in the template", result.unplaced),
        ("notes", result.notes),
    ):
        if entries:
            lines += ["", f"{title} ({len(entries)}):", *(f"  {entry}" for entry in entries)]
    return "\n".join(lines)


@storage.private_files()
def main(arguments: list[str] | None = None) -> int:
    """Write the files; return 0, or 2 if refused."""
    parser = argparse.ArgumentParser(
        prog="python -m grading.hand_back",
        description="Write grades and feedback as Canvas or Moodle takes them, or as a CSV.",
        epilog="Exit status: 0 written, 2 refused.",
    )
    parser.add_argument("system", choices=SYSTEMS, metavar="TO", help=", ".join(SYSTEMS))
    parser.add_argument("assignment", help="the name of a folder in solutions/")
    parser.add_argument("--template", type=Path, metavar="CSV", help="that system's own export")
    parser.add_argument("--column", metavar="NAME", help="the column for the grades")
    parser.add_argument("--scale", action="store_true", help="convert points to its maximum")
    parser.add_argument(
        "--course", type=Path, default=Path.cwd(), metavar="DIR", help="the course's folder"
    )
    options = parser.parse_args(arguments)
    try:
        course = Course.open(options.course)
        known(course, options.assignment)
        print(f"Assignment {options.assignment}", flush=True)
        result = hand_back(
            course,
            options.assignment,
            options.system,
            options.template,
            options.column,
            scale=options.scale,
        )
        print(tell(result, course.root))
    except Refusal as refusal:
        print(f"refused: {refusal}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
