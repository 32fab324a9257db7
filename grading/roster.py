r"""Who is in the course: tables of learners, as systems export them, and whom a name means.

A table is read as it came (:class:`Table`) and can be written again with some of its cells changed:
encoding, byte order mark, separator, line ends, and every row that is not touched stay the same.
Four kinds are recognized by their header (:func:`read`):

=========== ====================================================================================
kind        columns
=========== ====================================================================================
moodle      the assignment's grading worksheet: ``Identifier``, ``Full name``, ``Email address``,
            ``Grade``, ... (Moodle: ``mod/assign/gradingtable.php``)
canvas      the gradebook's export: ``Student`` (or ``LastName``, ``FirstName``), ``ID``,
            ``SIS User ID``, ``SIS Login ID``, ``Section``, ... (Canvas: ``gradebook_importer.rb``)
gradescope  the course's roster: ``First Name``, ``Last Name`` or ``Name``, ``SID``, ``Email``, ...
own         any other with names: ``learner``, ``first name``, ``last name``, ``email``,
            ``section``, ``id``, ``extension``
=========== ====================================================================================

Names and addresses in them are chosen by learners. They are compared, and shown without control
characters; nothing else is done with them.
"""

import csv
import hashlib
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, tzinfo
from pathlib import Path

from grading.course import NAME, Refusal
from grading.submission import printable

MAX_TABLE = 20 * 2**20  # bytes
SHOWN = 60  # characters of a cell in a message
COLUMNS = {
    "learner": ("learner", "username", "user name", "sis login id", "login id"),
    "first": ("first name", "firstname", "given name"),
    "last": ("last name", "lastname", "surname", "family name"),
    "full": ("full name", "fullname", "name", "student", "student name"),
    "email": ("email address", "email", "e mail", "e mail address"),
    "section": ("section", "sections", "group", "groups"),
    "extension": ("extension", "extension until", "extended until"),
    "id": ("id", "sid", "student id", "id number", "lms user id"),
    "sis": ("sis user id",),
    "identifier": ("identifier",),
    "grade": ("grade",),
    "status": ("status",),
    "role": ("role",),
    "submitted": ("last modified (submission)",),
}
SEPARATOR = re.compile(r"sep=([,;\t])\r?\n", re.IGNORECASE)  # Excel's own first line
NO_LEARNER = re.compile(r"\s*(muted|manual posting.*)?\s*", re.IGNORECASE)
EXTENDED = re.compile(r"Extension granted until: (.+?)(?: - |$)")
# Moodle writes dates for people, in the language of whoever exports: these are its English ones.
DATES = ("%A, %d %B %Y, %I:%M %p", "%A, %B %d, %Y, %I:%M %p", "%A, %d %B %Y, %H:%M")


@dataclass(frozen=True)
class Table:
    """A CSV file and its exact text.

    Attributes:
        path: the file.
        kind: ``moodle``, ``canvas``, ``gradescope`` or ``own``.
        header: the columns' names, as they are written.
        rows: the cells of each further record, as many as the header has.
        records: the text of each record, with its line end; the first one is the header, after the
            line in which Excel names the delimiter, if there is one.
        encoding: of the file; ``utf-8-sig`` has a byte order mark.
        delimiter: between cells.
    """

    path: Path
    kind: str
    header: list[str]
    rows: list[list[str]]
    records: list[str]
    encoding: str
    delimiter: str

    @property
    def columns(self) -> dict[str, int]:
        """The index of each column with a known meaning; the first name listed wins."""
        names = [_plain(name) for name in self.header]
        return {
            what: names.index(name)
            for what, known in COLUMNS.items()
            if (name := next((name for name in known if name in names), None))
        }

    def cell(self, row: list[str], what: str) -> str:
        """A row's cell in a column with a meaning; empty if there is no such column."""
        place = self.columns.get(what)
        return "" if place is None else row[place].strip()

    def render(self, changes: dict[int, dict[int, str]], more: str | None = None) -> bytes:
        """The file with some cells changed.

        Args:
            changes: by the index of a row, then of a column, the new text.
            more: the name of a column to be added at the end; its index is the header's length.
        """
        end = re.search(r"\r?\n?$", self.records[0])[0] or "\n"
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self.delimiter, lineterminator=end)
        if more is None:
            text.write(self.records[0])
        else:
            named = SEPARATOR.match(self.records[0])
            text.write(named[0] if named else "")
            writer.writerow([*self.header, more])
        width = len(self.header) + (more is not None)
        for index, row in enumerate(self.rows):
            if more is None and not changes.get(index):
                text.write(self.records[index + 1])
                continue
            cells = [*row, *[""] * (width - len(row))]
            for place, new in changes.get(index, {}).items():
                cells[place] = new
            writer.writerow(cells)
        return text.getvalue().encode(self.encoding)


@dataclass(frozen=True)
class Person:
    """A learner of a roster, or one whom an archive names.

    Attributes:
        first: first name.
        last: last name.
        email: address.
        login: the name under which an institution, or the roster's author, knows them.
        lms_id: the number that the system has for them in every course.
        section: group or section.
        participant: Moodle's number of them in one assignment.
        extension: until when they may hand in (UTC).
        submitted: when the system says that they handed in (UTC).
        row: the index of their row in the table.
        learner: the name of their folders here, and nbgrader's id.
        ids: all numbers and logins that a system may call them by.
    """

    first: str = ""
    last: str = ""
    email: str = ""
    login: str = ""
    lms_id: str = ""
    section: str = ""
    participant: str = ""
    extension: datetime | None = None
    submitted: datetime | None = None
    row: int = -1
    learner: str = ""
    ids: frozenset[str] = field(default=frozenset())

    @property
    def full(self) -> str:
        """Both names."""
        return f"{self.first} {self.last}".strip()


@dataclass(frozen=True)
class Owner:
    """A file's owner, as an archive identifies them.

    Attributes:
        name: as the archive writes it.
        id: Canvas's number of a user, Moodle's of a participant, Gradescope's SID.
        email: address.
        kind: ``moodle``, ``canvas``, ``gradescope`` or ``plain`` (a file's name and nothing else).
    """

    name: str
    id: str = ""
    email: str = ""
    kind: str = "plain"


# --- tables


def read(path: Path) -> Table:
    """Read a table of learners.

    Raises:
        Refusal: if it cannot be read, or no column says who a learner is.
    """
    shown = printable(path.name)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TABLE + 1)
    except OSError as error:
        raise Refusal(f"{printable(str(path))} cannot be read: {error.strerror}") from error
    if len(data) > MAX_TABLE:
        raise Refusal(f"{shown} is larger than {MAX_TABLE // 2**20} MB: no table of learners is")
    encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Refusal(
            f"{shown} is not UTF-8 text (byte {error.start}): export it again, or save it as "
            "CSV with the encoding UTF-8"
        ) from None
    named = SEPARATOR.match(text)
    first = named[0] if named else ""
    text = text.removeprefix(first)
    delimiter = max(",;\t", key=lambda sign: text.partition("\n")[0].count(sign))
    delimiter = named[1] if named else delimiter
    header, rows, records = [], [], []
    try:
        for row, record in _records(text, delimiter):
            if not header:
                header, width = row, len(row)
                record = first + record
            elif len(row) > width:
                raise Refusal(
                    f"{shown}: record {len(rows) + 2} has {len(row)} cells and the header "
                    f"{width}: repair that line, or export the file again"
                )
            else:
                rows.append([*row, *[""] * (width - len(row))])
            records.append(record)
    except csv.Error as error:
        raise Refusal(f"{shown} is no CSV (record {len(records) + 1}: {error})") from None
    table = Table(path, "own", header, rows, records, encoding, delimiter)
    columns = table.columns
    if {"identifier", "grade"} <= columns.keys():
        return replace(table, kind="moodle")
    if columns.keys() >= {"id", "section"} and ("full" in columns or "last" in columns):
        if re.search(r"sis (user|login) id|points possible", _plain(text[:10_000]), re.I):
            return replace(table, kind="canvas")
    if "sid" in map(_plain, header) and "email" in columns:
        return replace(table, kind="gradescope")
    if not columns.keys() & {"learner", "full", "last", "email"}:
        names = ", ".join(printable(name)[:SHOWN] for name in header[:12]) or "nothing"
        raise Refusal(
            f"{shown} does not say who the learners are. Its columns: {names}. Needed is one of: "
            "learner, full name, last name, email (in English, as in the exports' first line)"
        )
    return table


def _records(text: str, delimiter: str) -> Iterator[tuple[list[str], str]]:
    """The cells of each record that is not empty, and its text."""
    lines: list[str] = []

    def feed() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            lines.append(line)
            yield line

    for row in csv.reader(feed(), delimiter=delimiter, strict=True):
        record = "".join(lines)
        lines.clear()
        if row:
            yield row, record


def people(table: Table, zone: tzinfo | None = None) -> list[Person]:
    """The learners of a table, not yet with the names of their folders.

    Args:
        table: the table.
        zone: of times that name none; the machine's if None.

    Raises:
        Refusal: if an extension is no date.
    """
    people = []
    for index, row in enumerate(table.rows):

        def cell(what: str, row: list[str] = row, most: int = 100) -> str:
            return printable(" ".join(table.cell(row, what).split()))[:most]

        if table.kind == "canvas" and (
            "Points Possible" in row[0] or all(map(NO_LEARNER.fullmatch, row))
        ):
            continue
        if cell("role") and cell("role").casefold() != "student":
            continue
        first, last = cell("first"), cell("last")
        if not first and not last:
            first, last = split(cell("full"))
        login = cell("learner", most=300)
        if not (first or last or cell("email") or login):
            continue
        if table.kind == "canvas" and (first, last) == ("Test", "Student") and not cell("sis"):
            continue  # Canvas's own, for an instructor who looks at the course as a student
        if table.kind != "own" and not valid(login):
            login = ""
        status = EXTENDED.search(table.cell(row, "status")) if table.kind == "moodle" else None
        people.append(
            Person(
                first=first,
                last=last,
                email=cell("email"),
                login=login,
                lms_id=cell("id"),
                section=cell("section"),
                participant=(re.findall(r"\d+$", cell("identifier")) or [""])[0],
                extension=_extension(table, index, cell("extension"), zone)
                or (moment(status[1], zone) if status else None),
                submitted=moment(cell("submitted"), zone),
                row=index,
                ids=frozenset(filter(None, (cell("id"), cell("sis"), cell("learner")))),
            )
        )
    return people


def split(name: str) -> tuple[str, str]:
    """First and last name of a full one: "Lovelace, Ada", or "Ada Lovelace"."""
    if "," in name:
        last, _, first = name.partition(",")
    else:
        first, _, last = name.rpartition(" ")
    return first.strip(), last.strip()


def _extension(table: Table, index: int, text: str, zone: tzinfo | None) -> datetime | None:
    when = moment(text, zone)
    if text and when is None:
        raise Refusal(
            f"{printable(table.path.name)}, record {index + 2}: the extension {text[:SHOWN]!r} is "
            "no date; write it as 2026-03-08 or 2026-03-08 12:00"
        )
    return when


def moment(text: str, zone: tzinfo | None = None) -> datetime | None:
    """Parse a time, to UTC without a zone; None if it cannot be parsed.

    Args:
        text: ISO 8601 (a date alone means the end of its day), or as Moodle writes it in English.
        zone: of times that name none; the machine's if None.
    """
    text = text.strip()
    when = None
    if re.fullmatch(r"[0-9T :.+Z-]{8,40}", text):
        try:
            when = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text).replace(" Z", "Z"))
            if len(text) == 10:
                when = datetime.combine(when, time(23, 59, 59))
        except ValueError:
            return None
    else:
        for form in DATES:
            try:
                when = datetime.strptime(text, form)
                break
            except ValueError:
                continue
    if when is None or not 1971 <= when.year < 2199:
        return None
    return utc(when, zone)


def utc(when: datetime, zone: tzinfo | None = None) -> datetime:
    """A time in UTC, without a zone; what names no zone is of ``zone``, or of the machine's."""
    if when.tzinfo is None and zone is not None:
        when = when.replace(tzinfo=zone)
    return when.astimezone(UTC).replace(tzinfo=None)


# --- names


def _plain(name: str) -> str:
    """A column's name as it is compared."""
    return " ".join(re.sub(r"[^\w()]+", " ", name.casefold()).split())


def key(text: str) -> str:
    """A name as it is compared: no case, no accents, only letters and digits."""
    parts = unicodedata.normalize("NFKD", text).casefold()
    return "".join(sign for sign in parts if sign.isalnum())


def slug(text: str) -> str:
    """A name that a folder can have, in ASCII; empty if nothing of it can be kept."""
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^\w.@]+", "-", text).strip("-.@_").lower()[:60]


def mixed(name: str) -> bool:
    """Whether a name has letters of several of the alphabets whose letters look alike."""
    scripts = {unicodedata.name(sign, "").split(" ")[0] for sign in name if sign.isalpha()}
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH"}) > 1


def apart(one: Person, other: Person) -> bool:
    """Whether an address, or else a number, says that these are two people."""
    if one.email and other.email:
        return one.email.casefold() != other.email.casefold()
    return any(
        mine and theirs and mine != theirs
        for mine, theirs in (
            (one.lms_id, other.lms_id),
            (one.participant, other.participant),
        )
    )


def _called(one: Person, other: Person) -> bool:
    """Whether two people have the same normalized name, and nothing shows that they differ."""
    mine = {key(one.full), key(f"{one.last}{one.first}")}
    return not apart(one, other) and bool(mine & {key(other.full), key(other.learner)} - {""})


# What proves that somebody of a table is a learner of the gradebook, in this order. A name is
# proof only for those of whom nothing else is known.
PROOFS: tuple[Callable[[Person, Person], bool], ...] = (
    lambda one, other: bool(one.email) and one.email.casefold() == other.email.casefold(),
    lambda one, other: bool(one.login) and one.login.casefold() == other.learner.casefold(),
    lambda one, other: bool(one.lms_id) and one.lms_id == other.lms_id and _called(one, other),
    lambda one, other: (
        bool(one.participant) and one.participant == other.participant and _called(one, other)
    ),
    lambda one, other: _bare(one) and one.full == other.full and not apart(one, other),
    lambda one, other: _bare(one) and _called(one, other),
)


def _bare(one: Person) -> bool:
    return bool(one.full) and not (one.email or one.login or one.lms_id or one.participant)


def joined(people: list[Person], known: list[Person]) -> dict[int, Person]:
    """The gradebook's learner for each person of a table, by index; no ambiguous matches."""
    result: dict[int, Person] = {}
    for proof in PROOFS:
        had = {other.learner for other in result.values()}
        pairs = [
            (index, other)
            for index, one in enumerate(people)
            if index not in result
            for other in known
            if other.learner not in had and proof(one, other)
        ]
        ones = Counter(index for index, _ in pairs)
        others = Counter(other.learner for _, other in pairs)
        result |= {i: person for i, person in pairs if ones[i] == others[person.learner] == 1}
    return result


def named(people: Iterable[Person], known: Iterable[Person]) -> list[Person]:
    """Give everybody the name of their folders.

    It is, in this order: the name of the learner of the gradebook who this is proven to be; the
    login; the part of the address before the @; the whole address; last and first name; the same
    with a number, or with a hash of all that is known. A name that somebody else has in the
    gradebook, or that two would get, is passed over, and the order of a table decides nothing. Once
    a name is in the gradebook it stays, whichever roster comes next.

    Args:
        people: learners, of a roster or of an archive.
        known: those of the gradebook, with their names.

    Raises:
        Refusal: if two learners would get the same name, or a login can be no folder's name.
    """
    people, known = list(people), list(known)
    for person in people:
        if person.login and not valid(person.login):
            raise Refusal(
                f"the roster's record {person.row + 2}: no folder can have the name "
                f"{person.login[:SHOWN]!r}, which is in the column `learner`. Letters and digits "
                "can be in it, and . @ - _ after the first; at most 100. Or leave the cell empty"
            )
    names = {index: other.learner for index, other in joined(people, known).items()}
    for index, person in enumerate(people):
        if index not in names and person.login:
            names[index] = person.login
    used = {_folded(name) for name in [*names.values(), *(other.learner for other in known)]}
    for choice in range(len(_choices(Person()))):
        wanted = {
            index: name
            for index, person in enumerate(people)
            if index not in names
            and valid(name := _choices(person)[choice])
            and _folded(name) not in used
        }
        several = Counter(map(_folded, wanted.values()))
        names |= {index: name for index, name in wanted.items() if several[_folded(name)] == 1}
        used |= {_folded(name) for name in names.values()}
    result = [replace(person, learner=names.get(index, "")) for index, person in enumerate(people)]
    seen: dict[str, Person] = {}
    for person in result:
        name = _folded(person.learner or _choices(person)[-1])
        if name in seen or not person.learner:
            first = seen.get(name, Person())
            raise Refusal(
                f"two learners would be {person.learner or name!r}: {first.full} {first.email} and "
                f"{person.full} {person.email}. Give each a name in a column `learner`"
            )
        seen[name] = person
    return result


def _choices(person: Person) -> tuple[str, ...]:
    """Names for a learner's folders, the best first; the last one is almost certainly unique."""
    local = person.email.partition("@")[0]
    full = slug(f"{person.last}-{person.first}") or "learner"
    number = person.lms_id or person.participant
    known = (person.email.casefold(), person.lms_id, person.participant, person.full)
    digest = hashlib.sha256("\0".join(known).encode()).hexdigest()[:12]
    return (
        # Only what loses nothing: ada+@a.example is not ada.
        slug(local) if slug(local) == local.casefold() else "",
        slug(person.email),
        full
        if key(full) == key(person.full) or key(full) == key(f"{person.last}{person.first}")
        else "",
        slug(f"{full}-{number}") if number else "",
        f"{full}-{digest}",
    )


def possible_duplicates(people: Iterable[Person], known: Iterable[Person]) -> list[str]:
    """Learners of the gradebook who may appear here under another name, one line for each."""
    people, known = list(people), list(known)
    here = {person.learner for person in people}
    there = {person.learner for person in known}
    return sorted(
        f"{one.full}: {one.learner} here; {other.learner} in the gradebook may be the same. If so, "
        + (
            f"delete one of them: make forget LEARNER={other.learner}"
            if one.learner in there
            else f"write {other.learner} into a column `learner` of the roster before DO=1"
        )
        for one in people
        for other in known
        if other.learner not in here and _called(replace(one, lms_id="", participant=""), other)
    )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def valid(name: str) -> bool:
    """Whether a learner's folders can have this name."""
    return bool(NAME.fullmatch(name)) and len(name.encode()) <= 200


def _spellings(person: Person) -> set[str]:
    """The names under which an archive may have somebody, as they are compared."""
    return {key(person.full), key(f"{person.last}{person.first}"), key(person.learner)}


def find(owner: Owner, among: list[Person]) -> tuple[Person | None, str]:
    """Find the learner that an archive's entry refers to.

    An address decides, or a number where the name agrees: numbers of several systems, or of two
    assignments, may be the same. Where there is neither, a name decides that one learner alone has.

    Returns:
        The learner, or None and the reason.
    """
    shown, wanted = printable(owner.name)[:SHOWN], key(owner.name)
    if owner.email:
        same = [p for p in among if p.email and p.email.casefold() == owner.email.casefold()]
        if len(same) == 1:
            return same[0], ""
    if owner.id:
        moodle = owner.kind == "moodle"
        same = [p for p in among if owner.id in ({p.participant} if moodle else p.ids)]
        if len(same) == 1 and wanted in _spellings(same[0]):
            return same[0], ""
        if len(same) == 1 and moodle:
            return None, (
                f"participant {owner.id} is {same[0].full!r} in the roster and {shown!r} here: is "
                "it the worksheet of another assignment?"
            )
    if owner.kind == "plain":
        exact = [
            person
            for person in among
            if owner.name.casefold()
            in {name.casefold() for name in (person.learner, person.email, *person.ids) if name}
        ]
        if len(exact) == 1:
            return exact[0], ""
    same = [person for person in among if wanted and wanted in _spellings(person)]
    if len(same) == 1:
        other = _contrary(owner, same[0])
        if not other:
            return same[0], ""
        return None, f"{shown!r} is {other[0]} in the roster and {other[1]} here"
    if same:
        return None, f"{len(same)} learners of the roster are called {shown!r}"
    return None, f"nobody in the roster is {shown!r}{f' ({owner.id})' if owner.id else ''}"


def _contrary(owner: Owner, person: Person) -> tuple[str, str] | None:
    """The two values that show that a file's owner is someone else; None if there are none."""
    if owner.email and person.email and owner.email.casefold() != person.email.casefold():
        return person.email, printable(owner.email)
    if owner.kind == "moodle" and owner.id and person.participant not in ("", owner.id):
        return f"participant {person.participant}", owner.id
    return None
