r"""Bring a system's download into ``submitted/``: ``python -m grading.collect`` (``make collect``).

What Canvas, Moodle and Gradescope let an instructor download is taken as it comes, as a zip or
unpacked, and so is a folder or zip of ``NAME.ipynb``. Without ``--do`` nothing is written: the
command says what it would do. The layouts, from the systems' own sources where they are public:

========== =====================================================================================
canvas     ``lastfirst[_LATE]_USER_FILE_name.ipynb`` (``lib/content_zipper.rb`` of canvas-lms)
moodle     ``Full name_PARTICIPANT_assignsubmission_file/name.ipynb``, the folder ending in ``_``
           before Moodle 4.1, or ``..._assignsubmission_file_name.ipynb`` without folders
           (``mod/assign/classes/downloader.php``, ``feedback/file/importziplib.php``)
gradescope ``assignment_N_export/submission_N/name.ipynb`` and ``submission_metadata.yml``, whose
           entries have ``:submitters:`` (``:name:``, ``:sid:``, ``:email:``) and ``:created_at:``
plain      ``NAME.ipynb``
========== =====================================================================================

An archive is not trusted. Its list of members is checked as a whole before any of them is read
(:class:`Source`), none of its paths is ever used on the disk, and only notebooks are read, up to
the size that grading accepts, so the size of everything else does not matter. Whatever a learner
can put into an archive (a link, an odd name, thousands of files) affects only that learner. No
notebook is run.

When it was handed in: Gradescope's ``:created_at:``; Moodle's "Last modified (submission)", if the
grading worksheet is the roster. If all members of a zip have times within ten minutes, these are
the time of the download and are ignored (Moodle 4 and Canvas write such zips). Canvas only says
who was late; the time is then one second after the due date.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
import unicodedata
import warnings
import zipfile
import zlib
import zoneinfo
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path, PurePosixPath

import nbformat
import yaml
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.utils import is_solution
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from grading import roster, storage
from grading.course import Course, Refusal, known, register
from grading.notebook import Reject, match, name_of, parse
from grading.roster import Owner, Person
from grading.submission import MAX_BYTES, printable, timestamp

MAX_MEMBERS = 200_000  # a learner can hand in a repository of ten thousand small files
MAX_DIRECTORY = 32 * 2**20  # bytes of a zip's list of members, which is read as a whole
MAX_PATH = 1000  # characters
MAX_TRIES = 20  # notebooks of one learner that are looked at
FEW = 2  # learners who hand in another assignment's file by mistake, each alone
MAX_METADATA = 32 * 2**20  # bytes of Gradescope's metadata, which hold the tests' outputs
DOWNLOAD = timedelta(minutes=10)  # between the first and the last member: the download's own times
STAMP = "%Y-%m-%d %H:%M:%S UTC"
METADATA = "submission_metadata.yml"
MOODLE = re.compile(r"([^_/]+)_(\d+)_assignsubmission_([a-z]+)(?:_(.*))?", re.DOTALL)
TEAM = re.compile(r"([^_/]+)_assignsubmission_([a-z]+)(?:_(.*))?", re.DOTALL)
CANVAS = re.compile(r"(.+?)(?:_(LATE))?_(\d+)_(\d+)_(.+)", re.DOTALL)
ANONYMOUS = re.compile(r"anon_\w+?_\d+_.+", re.DOTALL)
LITTER = re.compile(r"__MACOSX|\.DS_Store|Thumbs\.db|desktop\.ini|\._.*|~.*", re.IGNORECASE)
COUNTER = re.compile(r"(\s*\(\d+\)|[-_ ]\d{1,3}|[-_ ]copy(?:[-_ ]?\d+)?)+$", re.IGNORECASE)


@dataclass(frozen=True)
class Member:
    """A file of a download.

    Attributes:
        path: its path in the download, separated by ``/``.
        size: bytes, unpacked, as the download says.
        time: when it was last changed, in UTC; None if that is unknown.
        handle: what the source reads it by.
    """

    path: str
    size: int
    time: datetime | None
    handle: object


@dataclass(frozen=True)
class Upload:
    """A member with what the layout says of it.

    Attributes:
        member: the file.
        owner: whose it is; None if the layout does not say.
        file: the name that the learner gave it.
        when: when it was handed in (UTC), if the layout says so.
        late: whether the layout calls it late.
        order: a number that is larger for what was handed in later; 0 if the layout has none.
        folder: the name in the layout that feedback has to go by.
    """

    member: Member
    owner: Owner | None
    file: str
    when: datetime | None = None
    late: bool = False
    order: int = 0
    folder: str = ""


@dataclass
class Choice:
    """The planned action for one learner.

    Attributes:
        person: who.
        upload: the file that counts.
        digest: the hash of its bytes.
        when: when it was handed in (UTC), if that is known.
        state: ``new``, ``same``, ``retimed`` (the same file with another time), ``replaces``,
            ``older`` (than what is there), ``kept`` (what the instructor put there since) or
            ``absent`` (not this assignment's notebook, and something is there).
        withdrawn: whether an extension is taken back.
        granted: the kind of table that granted the extension there is; empty if none did.
        stand_in: whether it is not this assignment's notebook, and taken so that its author gets a
            verdict.
        late: by how much; None if it is in time or that is unknown.
    """

    person: Person
    upload: Upload
    digest: str
    when: datetime | None
    state: str = "new"
    late: timedelta | None = None
    withdrawn: bool = False
    granted: str = ""
    stand_in: bool = False


@dataclass
class Plan:
    """The contents of a download, and what to do with each file."""

    layout: str
    members: int
    choices: list[Choice] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    misnamed: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    nothing: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    people: list[Person] = field(default_factory=list)
    extensions: str = ""  # the kind of the table, if it says who has one


# --- the download


class Source:
    """A zip or a folder: its files, checked as a whole, and their bytes.

    Args:
        path: the zip or the folder.
        zone: of the times in a zip, which name none.
        leave: a file that is no part of it, such as a roster in the same folder.

    Raises:
        Refusal: if it is neither, or cannot be a system's download.
    """

    def __init__(self, path: Path, zone: tzinfo | None = None, leave: Path | None = None):
        self.path, self.zone, self.leave = path, zone, leave
        self.shown = printable(path.name)
        self.left: list[str] = []
        self._zip: zipfile.ZipFile | None = None
        try:
            if path.is_dir():
                self.members = list(self._walk())
            elif path.is_file():
                self._zip = self._open()
                self.members = list(self._list())
            else:
                raise Refusal(f"{printable(str(path))} is neither a zip nor a folder")
            self._check()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._zip is not None:
            self._zip.close()

    def _refuse(self, path: str, reason: str) -> Refusal:
        return Refusal(
            f"{self.shown} is refused as a whole, and nothing of it was taken: "
            f"{printable(path)[:100]!r} {reason}. No system's download looks so; download it "
            "again, or unpack it, delete what is named here, and give the folder as FROM"
        )

    def _open(self) -> zipfile.ZipFile:
        try:
            with self.path.open("rb") as file:
                # The reader's own way to find the list, which it then reads in one piece.
                end = zipfile._EndRecData(file)
            if end is None:
                raise zipfile.BadZipFile("it has no list of members")
            if end[zipfile._ECD_SIZE] > MAX_DIRECTORY:
                raise self._refuse(self.path.name, f"has more than {MAX_MEMBERS} members")
            return zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
            raise Refusal(
                f"{self.shown} is no zip that can be read ({printable(str(error))[:100]}): "
                "download it again, or unpack it and name the folder"
            ) from None
        except OSError as error:
            raise Refusal(f"{self.shown} cannot be read: {error.strerror}") from error

    def _list(self) -> Iterator[Member]:
        packed = 0
        for info in self._zip.infolist():
            path = info.orig_filename
            if not info.flag_bits & 0x800:  # written as UTF-8 without saying so, as by some systems
                with contextlib.suppress(UnicodeError):
                    path = path.encode("cp437").decode()
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.flag_bits & 0x1:
                raise self._refuse(path, "is encrypted")
            if kind == stat.S_IFLNK:
                raise self._refuse(path, "is a link")
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise self._refuse(path, "is a device, a pipe or a socket")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self._refuse(path, "is packed in an unusual way")
            packed += info.compress_size
            if packed > self.path.stat().st_size:
                raise self._refuse(path, "shares its bytes with others: a bomb")
            when = None
            if info.date_time[0] > 1980:
                with contextlib.suppress(ValueError):
                    when = roster.utc(datetime(*info.date_time), self.zone)
            if info.is_dir():
                self._look(path.rstrip("/"))
            elif "\\" in path:
                self._leave(path, "has a backslash in its name")
            else:
                yield Member(path, info.file_size, when, info)

    def _walk(self) -> Iterator[Member]:
        for root, folders, files in os.walk(self.path):
            for name in sorted([*folders, *files]):
                path = Path(root, name)
                inside = path.relative_to(self.path).as_posix()
                status = path.lstat()
                if stat.S_ISLNK(status.st_mode):
                    self._leave(inside, "is a link")
                    continue
                if name in folders or (self.leave and path.samefile(self.leave)):
                    continue
                if not stat.S_ISREG(status.st_mode):
                    self._leave(inside, "is a device, a pipe or a socket")
                    continue
                when = datetime.fromtimestamp(int(status.st_mtime)).astimezone()
                yield Member(inside, status.st_size, roster.utc(when), path)

    def _leave(self, path: str, reason: str) -> None:
        self.left.append(f"{printable(path)[:120]}: {reason}; left out")

    def _look(self, path: str) -> None:
        """Check that a path stays inside the archive, on every operating system."""
        if len(path) > MAX_PATH:
            raise self._refuse(path, f"is a name of more than {MAX_PATH} characters")
        if "\0" in path:
            raise self._refuse(path, "has a NUL in its name")
        if path.startswith("/") or re.match(r"[A-Za-z]:", path):
            raise self._refuse(path, "is an absolute path")
        if not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise self._refuse(path, "has an empty part, . or .. in its path")

    def _check(self) -> None:
        if len(self.members) > MAX_MEMBERS:
            raise self._refuse(self.path.name, f"has more than {MAX_MEMBERS} members")
        seen = set()
        for member in self.members:
            self._look(member.path)
            if member.path in seen:
                raise self._refuse(member.path, "is in it twice")
            seen.add(member.path)

    def read(self, member: Member, limit: int = MAX_BYTES) -> bytes:
        """A member's bytes, one more than the limit if there are more.

        Raises:
            Reject: if they cannot be read.
        """
        try:
            if self._zip is not None:
                with self._zip.open(member.handle) as file:
                    return file.read(limit + 1)
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(member.handle, flags), "rb") as file:
                return file.read(limit + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError) as error:
            kind = type(error).__name__
            raise Reject(f"it is damaged in the download ({kind})") from None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


# --- layouts


def recognize(source: Source) -> tuple[str, list[Upload]]:
    """Which system's download it is, and what the layout says of each file.

    Raises:
        Refusal: if it is none of them.
    """
    members = [
        member
        for member in source.members
        if not any(LITTER.fullmatch(part) for part in member.path.split("/"))
    ]
    paths = [PurePosixPath(member.path).parts for member in members]
    # A single folder around everything, as unpacking makes it, carries no information.
    tops = {parts[0] for parts in paths}
    cut = 0
    if len(tops) == 1 and all(len(parts) > 1 for parts in paths):
        cut = 0 if MOODLE.fullmatch(next(iter(tops))) else 1
    inner = list(zip(members, [parts[cut:] for parts in paths], strict=True))
    metadata = [member for member, parts in inner if parts == (METADATA,)]
    if metadata:
        return "gradescope", list(_gradescope(source, metadata[0], inner))
    if any("_assignsubmission_" in parts[0] for _, parts in inner):
        return "moodle", list(_moodle(inner, source.members))
    flat = [(member, parts) for member, parts in inner if len(parts) == 1]
    if any(CANVAS.fullmatch(parts[0]) or ANONYMOUS.fullmatch(parts[0]) for _, parts in flat):
        return "canvas", list(_canvas(inner))
    if any(parts[0].lower().endswith(".ipynb") for _, parts in flat):
        return "plain", list(_plain(inner, source.members))
    shown = ", ".join(printable(member.path)[:60] for member in members[:3]) or "nothing"
    raise Refusal(
        f"{source.shown} is no download of Canvas, Moodle or Gradescope, and no folder of "
        f"NAME.ipynb; it holds: {shown}"
    )


def _times(members: list[Member]) -> bool:
    """Whether the members have times of their own rather than the download's."""
    times = sorted(member.time for member in members if member.time)
    return len(times) > 1 and times[-1] - times[0] > DOWNLOAD


def _canvas(inner: list) -> Iterator[Upload]:
    for member, parts in inner:
        matched = CANVAS.fullmatch(parts[0]) if len(parts) == 1 else None
        if matched is None or ANONYMOUS.fullmatch(parts[0]):
            yield Upload(member, None, parts[-1])
            continue
        name, late, user, file, rest = matched.groups()
        owner = Owner(name, id=user, kind="canvas")
        yield Upload(member, owner, rest, late=bool(late), order=int(file[:18]), folder=parts[0])


def _moodle(inner: list, members: list[Member]) -> Iterator[Upload]:
    own_times = _times(members)
    for member, parts in inner:
        matched = MOODLE.fullmatch(parts[0])
        team = TEAM.fullmatch(parts[0])
        if matched:
            name, number, plugin, rest = matched.groups()
        elif team:
            (name, plugin, rest), number = team.groups(), ""
        else:
            yield Upload(member, None, parts[-1])
            continue
        file = parts[-1] if len(parts) > 1 else rest or ""
        if plugin == "onlinetext" and not file.lower().endswith(".ipynb"):
            continue  # Moodle's own page of what was typed beside the file
        owner = Owner(name, id=number, kind="moodle")
        folder = f"{name}_{number}_assignsubmission_file_" if number else ""
        when = member.time if own_times else None
        yield Upload(member, owner, file, when=when, folder=folder)


def _gradescope(source: Source, metadata: Member, inner: list) -> Iterator[Upload]:
    data = source.read(metadata, MAX_METADATA)
    if len(data) > MAX_METADATA:
        raise source._refuse(metadata.path, f"is larger than {MAX_METADATA // 2**20} MB")
    try:
        # Plain text only: no dates, numbers or objects.
        entries = yaml.load(data, getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Refusal(
            f"{source.shown}: {METADATA} cannot be read ({type(error).__name__}): download it again"
        ) from None
    entries = entries if isinstance(entries, dict) else {}
    for member, parts in inner:
        if parts == (METADATA,):
            continue
        entry = entries.get(parts[0]) if len(parts) > 1 else None
        people = entry.get(":submitters") if isinstance(entry, dict) else None
        owners = [
            Owner(*(_text(each, name) for name in (":name", ":sid", ":email")), kind="gradescope")
            for each in (people if isinstance(people, list) else [])
            if isinstance(each, dict)
        ]
        when = roster.moment(_text(entry, ":created_at").replace("UTC", "Z")) if owners else None
        for owner in owners or [None]:
            yield Upload(member, owner, parts[-1], when=when, folder=parts[0])


def _text(entry: dict, name: str) -> str:
    value = entry.get(name)
    return printable(value)[:100].strip() if isinstance(value, str) else ""


def _plain(inner: list, members: list[Member]) -> Iterator[Upload]:
    own_times = _times(members) or len(members) == 1
    names: dict[str, str] = {}
    for member, parts in inner:
        name, dot, suffix = parts[0].rpartition(".")
        name = re.sub(r"\s*\(\d+\)$", "", name)  # a browser's second copy
        name = names.setdefault(_folded(name), name)
        owner = Owner(name) if len(parts) == 1 and dot and suffix.lower() == "ipynb" else None
        when = member.time if own_times else None
        yield Upload(member, owner, parts[-1], when=when, folder=parts[0])


# --- the plan


def plan(
    course: Course, assignment: str, source: Source, table: roster.Table | None, zone: tzinfo | None
) -> Plan:
    """Work out what to do, without doing it.

    Raises:
        Refusal: if the download or the roster cannot be used.
    """
    layout, uploads = recognize(source)
    result = Plan(layout, len(source.members) + len(source.left), unusable=[*source.left])
    enrolled = students(course, assignment)
    if layout == "moodle":
        owners = dict.fromkeys(one.owner for one in uploads if one.owner)
        same_assignment(assignment, [(o.name, o.id) for o in owners], enrolled, source.shown)
    if table is not None:
        result.people = roster.named(roster.people(table, zone), enrolled)
        if "extension" in table.columns or table.kind == "moodle":
            result.extensions = table.kind
        files = _by_roster(uploads, result)
    else:
        files = _by_archive(uploads, result, enrolled)
    people = result.people or [person for person, _ in files]
    result.notes += roster.possible_duplicates(people, enrolled)
    due, extensions = _dates(course, assignment)
    others = {_folded(name) for name in course.assignments()} - {_folded(assignment)}
    release = _release(course, assignment)
    for person, mine in files:
        choice = _choose(person, mine, source, assignment, others, release, result)
        if choice is not None:
            choice.granted = collected(course, assignment, person.learner).get("granted", "")
            more = extensions.get(person.learner)
            if person.extension:
                choice.granted = result.extensions
            elif due and more and result.extensions and choice.granted == result.extensions:
                # Only a table of the same kind can take back what a table granted.
                choice.withdrawn, choice.granted = True, ""
            elif due and more:
                choice.person = replace(person, extension=due + more)
            _judge(course, assignment, choice, due, result)
            if choice.state == "absent":
                continue
            result.choices.append(choice)
    _insist_on_this_one(course, assignment, result.choices)
    result.choices.sort(key=lambda choice: choice.person.learner)
    there = {person.learner for person, mine in files if mine}
    result.nothing = sorted(p.learner for p in result.people if p.learner not in there)
    result.gone = [one for one in _from(course, assignment, layout) if one not in there]
    result.nothing = [learner for learner in result.nothing if learner not in result.gone]
    _remark(result, due, zone, table)
    return result


def _insist_on_this_one(course: Course, assignment: str, choices: list[Choice]) -> None:
    """Refuse a download in which most learners' files have the name of another assignment."""
    others = {_folded(name): name for name in course.assignments() if name != assignment}
    named = Counter(
        others[name]
        for choice in choices
        if choice.stand_in
        for name in [*{*_stem(choice.upload.file)} & others.keys()][:1]
    )
    ours = sum(not choice.stand_in for choice in choices)
    for other, count in named.most_common(1):
        if count > max(ours, FEW):
            raise Refusal(
                f"{count} learners have a file of {other}, and {ours} one of {assignment}: say "
                f"which assignment the download is of, ASSIGNMENT={other}"
            )


def _by_roster(uploads: list[Upload], result: Plan) -> list[tuple[Person, list[Upload]]]:
    """Whose files these are, by the roster."""
    owned: dict[Owner, list[Upload]] = defaultdict(list)
    for one in uploads:
        if one.owner is None:
            result.unmatched.append(f"{_path(one)}: the name does not say whose it is")
        else:
            owned[one.owner].append(one)
    files: dict[str, list[tuple[Owner, list[Upload]]]] = defaultdict(list)
    for owner, mine in owned.items():
        person, reason = roster.find(owner, result.people)
        if person is None:
            result.unmatched += [f"{_path(one)}: {reason}" for one in mine]
        else:
            files[person.learner].append((owner, mine))
    people = {person.learner: person for person in result.people}
    return [
        (people[learner], mine)
        for learner in sorted(files)
        if (mine := _one(people[learner], files[learner], result))
    ]


def _one(person: Person, theirs: list[tuple[Owner, list[Upload]]], result: Plan) -> list[Upload]:
    """A learner's files; where the system distinguishes several owners, only the certain one's."""
    if len({owner.id for owner, _ in theirs}) > 1:
        ids = {*person.ids, person.participant} - {""}
        sure = [entry for entry in theirs if entry[0].id in ids]
        keep = sure if len({owner.id for owner, _ in sure}) == 1 else []
        for owner, mine in theirs:
            if (owner, mine) not in keep:
                reason = f"the system has several of this name, and {person.learner} is one"
                result.unmatched += [f"{_path(one)}: {reason}" for one in mine]
        theirs = keep
    return [one for _, mine in theirs for one in mine]


def _by_archive(
    uploads: list[Upload], result: Plan, enrolled: list[Person]
) -> list[tuple[Person, list[Upload]]]:
    """Whose files these are, by the download itself and the learners in the gradebook."""
    owned: dict[Owner, list[Upload]] = defaultdict(list)
    for one in uploads:
        if one.owner is None:
            result.unmatched.append(f"{_path(one)}: the name does not say whose it is")
        elif roster.mixed(one.owner.name):
            result.unmatched.append(f"{_path(one)}: the name mixes alphabets that look alike")
        elif one.owner.kind == "plain" and not roster.valid(one.owner.name):
            result.unmatched.append(
                f"{_path(one)}: no folder can have this name (letters, digits, and . @ - _ inside)"
            )
        else:
            owned[one.owner].append(one)
    files: dict[str, list[tuple[Owner, list[Upload]]]] = defaultdict(list)
    new: list[Owner] = []
    for owner, mine in owned.items():
        person, _ = roster.find(owner, enrolled)
        if person is None or roster.apart(_person(owner), person):
            new.append(owner)
        else:
            files[person.learner].append((owner, mine))
    people = {person.learner: person for person in enrolled}
    known_ones = [
        (people[learner], mine)
        for learner in sorted(files)
        if (mine := _one(people[learner], files[learner], result))
    ]
    return [
        *known_ones,
        *zip(
            roster.named(map(_person, new), enrolled), [owned[owner] for owner in new], strict=True
        ),
    ]


def _person(owner: Owner) -> Person:
    """A learner known only from the download."""
    if owner.kind == "plain":
        return Person(login=owner.name)
    if owner.kind == "canvas":  # last and first name in one word
        return Person(last=owner.name, lms_id=owner.id)
    first, last = roster.split(owner.name)
    number = {"lms_id" if owner.kind == "gradescope" else "participant": owner.id}
    return Person(first=first, last=last, email=owner.email, **number)


def _choose(
    person: Person,
    mine: list[Upload],
    source: Source,
    assignment: str,
    others: set[str],
    release: nbformat.NotebookNode | None,
    result: Plan,
) -> Choice | None:
    """The file that counts among a learner's; what happens to the others goes into the plan.

    A notebook that can be read comes before one that cannot, one that somebody worked in before the
    untouched release, a later one before an earlier one, and the right name before another.
    """
    ranked = []
    wanted = _folded(assignment)
    mine = sorted(
        mine,
        key=lambda one: (wanted in _stem(one.file), one.when or datetime.min, one.order),
        reverse=True,
    )
    useless, no_notebook = [], []
    for one in mine:
        where = f"{person.learner}: {_path(one)}"
        if not one.file.lower().endswith(".ipynb"):
            no_notebook.append(one)
            continue
        if len(ranked) == MAX_TRIES:
            result.extra.append(f"{where}: not looked at, after {MAX_TRIES} others")
            continue
        # A plain file's name is its learner's.
        name, base = (wanted, wanted) if one.owner.kind == "plain" else _stem(one.file)
        if wanted not in (name, base) and others & {name, base}:
            result.misnamed.append(f"{where}: another assignment's; left out")
            useless.append(one)
            continue
        try:
            data = source.read(one.member)
        except Reject as problem:
            result.unusable.append(f"{where}: {problem}")
            continue
        readable, worked = _state(data, release)
        rank = (readable, worked, one.when or datetime.min, one.order)
        ranked.append(((*rank, wanted == name, wanted == base, one.file), one, _digest(data)))
    shown = [f"{person.learner}: {_path(one)}: no notebook; left out" for one in no_notebook]
    if len(shown) > MAX_TRIES:
        shown[MAX_TRIES:] = [f"{person.learner}: {len(shown) - MAX_TRIES} more that are none"]
    result.extra += shown
    if not ranked:
        with contextlib.suppress(Reject):
            for one in [*useless, *no_notebook][:1]:
                data = _stand_in(source.read(one.member))
                when = person.submitted or one.when
                return Choice(person, one, _digest(data), when, stand_in=True)
        if mine:
            result.unusable.append(f"{person.learner}: handed in nothing that can be taken")
        return None
    ranked.sort(key=lambda entry: entry[0])
    rank, one, digest = ranked[-1]
    if not (rank[4] or rank[5]):
        result.misnamed.append(f"{person.learner}: {_path(one)}: taken as {assignment}.ipynb")
    for other, left, _ in ranked[:-1]:
        reason = "cannot be read" if not other[0] else "untouched"
        if other[:2] == rank[:2]:
            reason = "older" if other[2:4] < rank[2:4] else "which is newer is unknown; look"
        result.extra.append(f"{person.learner}: {_path(left)}: {reason}; {_path(one)} is taken")
    return Choice(person, one, digest, person.submitted or one.when)


def _stand_in(data: bytes) -> bytes:
    """What is graded when a file is no notebook: the file itself, unless it is too large."""
    return data if len(data) <= MAX_BYTES else b""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _stem(file: str) -> tuple[str, str]:
    """A file's name as it is compared, and without what browsers and systems add to it."""
    name = _folded(re.sub(r"\.ipynb$", "", file, flags=re.IGNORECASE)).strip()
    return name, COUNTER.sub("", name).strip()


def _state(data: bytes, release: nbformat.NotebookNode | None) -> tuple[bool, bool]:
    """Whether this is a notebook that can be read, and whether somebody has worked in it."""
    try:
        cells = parse(data)
    except (Reject, MemoryError, RecursionError):
        return False, True
    if release is None:
        return True, True
    blanks = {name_of(cell): cell.source for cell in release.cells if is_solution(cell)}
    theirs = [
        (name, cell.source)
        for name, cell in zip(match(cells, release), cells, strict=True)
        if name in blanks
    ]
    return True, not theirs or any(blanks[name] != text for name, text in theirs)


def _judge(
    course: Course, assignment: str, choice: Choice, due: datetime | None, result: Plan
) -> None:
    """Add when it was handed in, what becomes of what is there already, and who is late."""
    person = choice.person
    until = max(due, person.extension) if due and person.extension else due
    if result.layout == "canvas" and choice.upload.late and choice.when is None and due:
        choice.when = due + timedelta(seconds=1)  # by how much, Canvas does not say
    folder = course.folder("submitted", person.learner, assignment)
    if os.path.lexists(folder):
        _compare(course, assignment, choice, folder, result)
    when = choice.when
    if choice.state in ("older", "kept"):  # what counts is there already
        when = timestamp(folder / "timestamp.txt")[0]
    if until and when and when > until:
        choice.late = when - until


def _compare(course: Course, assignment: str, choice: Choice, folder: Path, result: Plan) -> None:
    """Add what becomes of what is there already."""
    person = choice.person
    noted = collected(course, assignment, person.learner)
    choice.state = "replaces"
    path = folder / f"{assignment}.ipynb"
    before = timestamp(folder / "timestamp.txt")[0]
    there = ""
    if path.is_file() and not path.is_symlink() and not folder.is_symlink():
        with path.open("rb") as file:
            there = _digest(file.read(MAX_BYTES + 1))
    by_hand = noted and (
        there != noted.get("sha256") or noted.get("time", str(before)) != str(before)
    )
    order = int(noted.get("order", 0)) if noted.get("layout") == result.layout else 0
    if there == choice.digest and choice.when == before:
        choice.state = "same"
    elif by_hand and choice.digest == noted.get("sha256"):
        choice.state = "kept"
    elif there == choice.digest and choice.when is None:
        choice.state = "same"
    elif choice.stand_in:
        choice.state = "absent"
    elif there == choice.digest:
        choice.state = "retimed"
    elif before and choice.when and choice.when != before:
        choice.state = "older" if choice.when < before else "replaces"
    elif choice.upload.order < order:
        choice.state = "older"


def _remark(
    result: Plan, due: datetime | None, zone: tzinfo | None, table: roster.Table | None
) -> None:
    """Report which times are unknown, and what that means for lateness."""
    times = [choice.when for choice in result.choices]
    say = result.notes.append
    if due is None:
        say("the assignment has no due date here, so nobody is late")
    if result.layout == "canvas" and any(choice.upload.late for choice in result.choices):
        say(
            "Canvas says who was late, and not by how much: it counts as a second here"
            if due
            else "Canvas calls some late; here nobody is, because the assignment has no due date"
        )
    elif result.layout == "moodle" and None in times:
        given = printable(table.path.name) if table else ""
        reason = f"{given} is not the grading worksheet, which says it" if given else ""
        if table and table.kind == "moodle":
            reason = f"{given} does not say so in English"
        say(
            f"it is not known when some handed in, so they are not late{reason and f' ({reason})'}"
            ": give the grading worksheet as ROSTER, downloaded with Moodle in English"
        )
    elif result.layout == "plain" and None in times:
        say("the files' times are those of the download, so nobody is late")
    if zone is None and result.layout in ("moodle", "plain") and any(times):
        here = datetime.now().astimezone().tzname()
        say(f"times are read as {here}, this machine's; ZONE=Europe/Berlin is for another")
    if any(line.split("; ")[-2:-1] == ["look"] for line in result.extra):
        say(
            "to settle what says `look`: put the file that counts into submitted/ yourself; it "
            "stays until its author hands in another"
        )
    extended = [person for person in result.people if person.extension]
    if extended and due is None:
        count = "1 extension is" if len(extended) == 1 else f"{len(extended)} extensions are"
        say(f"{count} not kept: set the due date, then run this again")
    elif extended:
        say(f"{len(extended)} {'has' if len(extended) == 1 else 'have'} an extension")


def _path(one: Upload) -> str:
    return printable(one.member.path)[:120]


def _release(course: Course, assignment: str) -> nbformat.NotebookNode | None:
    path = course.folder("release", ".", assignment) / f"{assignment}.ipynb"
    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.reader.NotJSONError):
        return None


# --- the gradebook


@contextlib.contextmanager
def open_gradebook(course: Course) -> Iterator[Gradebook]:
    """nbgrader's gradebook.

    Raises:
        Refusal: if it cannot be used; the message says what to do.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)
        storage.private(course)
        try:
            with Gradebook(course.db_url, course.course_id) as gradebook:
                yield gradebook
        except SQLAlchemyError as error:
            reason = storage.explain(error, course) or type(error).__name__
            raise Refusal(f"the gradebook cannot be used: {reason}") from error


def has_gradebook(course: Course) -> bool:
    """Whether there is one already (opening it would create one)."""
    path = storage.gradebook_file(course)
    return path is None or path.is_file()


def students(course: Course, assignment: str) -> list[Person]:
    """The learners in the gradebook, with Moodle's numbers of them in this assignment.

    A dry run does not create a gradebook.
    """
    if not has_gradebook(course):
        return []
    with open_gradebook(course) as gradebook:
        return [
            Person(
                first=student.first_name or "",
                last=student.last_name or "",
                email=student.email or "",
                lms_id=student.lms_user_id or "",
                participant=entry.get("id", "") if entry.get("layout") == "moodle" else "",
                ids=frozenset(filter(None, (student.lms_user_id,))),
                learner=student.id,
            )
            for student in gradebook.students
            for entry in [collected(course, assignment, student.id)]
        ]


def collected(course: Course, assignment: str, learner: str) -> dict[str, str]:
    """What was recorded about a submission when it was collected; empty if it was not."""
    path = course.progress(assignment) / "collected" / f"{learner}.json"
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        return {name: str(text) for name, text in entry.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _from(course: Course, assignment: str, layout: str) -> list[str]:
    """Who has a submission here that came from a download of this layout."""
    notes = sorted(course.progress(assignment).glob("collected/*.json"))
    return [
        path.stem
        for path in notes
        if collected(course, assignment, path.stem).get("layout") == layout
        and os.path.lexists(course.folder("submitted", path.stem, assignment))
    ]


def same_assignment(
    assignment: str, numbers: Iterable[tuple[str, str]], enrolled: list[Person], shown: str
) -> None:
    """Check that Moodle's participant numbers are those of this assignment.

    Args:
        assignment: which assignment.
        numbers: names and numbers in a download or a worksheet.
        enrolled: learners, with the numbers that were noted.
        shown: the name of the download or the worksheet.

    Raises:
        Refusal: if more of them contradict the recorded numbers than agree with them.
    """
    noted: dict[str, set[str]] = defaultdict(set)
    for person in enrolled:
        if person.participant:
            noted[roster.key(person.full)].add(person.participant)
    pairs = [
        (name, number, noted[key])
        for name, number in numbers
        if number and (key := roster.key(name)) in noted
    ]
    wrong = [pair for pair in pairs if pair[1] not in pair[2]]
    if len(wrong) > len(pairs) - len(wrong):
        name, number, before = wrong[0]
        raise Refusal(
            f"{shown} is of another assignment than {assignment}: {printable(name)!r} is "
            f"participant {number} there, and was {' or '.join(sorted(before))} when {assignment} "
            "was collected. Say which assignment it is: ASSIGNMENT=. If Moodle's course was made "
            f"anew, first delete progress/{assignment}/collected"
        )


def _dates(course: Course, assignment: str) -> tuple[datetime | None, dict[str, timedelta]]:
    """The due date (UTC), and the extension of each learner who has one."""
    if not has_gradebook(course):
        return None, {}
    with open_gradebook(course) as gradebook:
        try:
            due = gradebook.find_assignment(assignment).duedate
        except MissingEntry:
            return None, {}
        every = gradebook.assignment_submissions(assignment)
        return due, {one.student_id: one.extension for one in every if one.extension}


# --- carrying out the plan


def do(course: Course, assignment: str, source: Source, result: Plan) -> None:
    """Carry out the plan; each submission completely or not at all, and safe to repeat.

    What is replaced is kept in ``progress/ASSIGNMENT/replaced/NAME/``, and what feedback has to be
    called to be returned in ``progress/ASSIGNMENT/collected/NAME.json``.

    Raises:
        Refusal: if it cannot be written.
    """
    (course.root / "progress").mkdir(exist_ok=True)
    with storage.alone(course.root):
        storage.check(course, assignment)
        try:
            for choice in result.choices:
                if choice.state in ("new", "replaces", "retimed"):
                    _write(course, assignment, source, choice)
                _note(course, assignment, choice, result)
        except (OSError, Reject) as error:
            raise Refusal(storage.explain(error, course) or str(error)) from error
        _enrol(course, assignment, result)


def _write(course: Course, assignment: str, source: Source, choice: Choice) -> None:
    learner = choice.person.learner
    target = course.folder("submitted", learner, assignment)
    if target.parent.is_symlink() or (target.parent.exists() and not target.parent.is_dir()):
        raise Refusal(f"submitted/{learner} is a link or a file: remove it")
    data = source.read(choice.upload.member)
    data = _stand_in(data) if choice.stand_in else data
    if _digest(data) != choice.digest:
        raise Refusal(f"{source.shown} changed while it was read; run the same command again")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".collect-") as place:
        made = Path(place, assignment)
        made.mkdir()
        (made / f"{assignment}.ipynb").write_bytes(data)
        if choice.when:
            (made / "timestamp.txt").write_text(f"{choice.when:{STAMP}}\n")
        if os.path.lexists(target):
            os.rename(target, _keep(course, assignment, learner))
        os.rename(made, target)


def _keep(course: Course, assignment: str, learner: str) -> Path:
    """A new numbered folder for the submission that is replaced."""
    folder = course.progress(assignment) / "replaced" / learner
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while os.path.lexists(folder / str(number)):
        number += 1
    return folder / str(number)


def _note(course: Course, assignment: str, choice: Choice, result: Plan) -> None:
    """Keep what the system calls this submission, and what was written.

    :mod:`grading.hand_back` needs the one, and the next :func:`plan` the other.
    """
    upload, owner, learner = choice.upload, choice.upload.owner, choice.person.learner
    before = collected(course, assignment, learner)
    stamp = course.folder("submitted", learner, assignment) / "timestamp.txt"
    entry = {"layout": result.layout, "folder": upload.folder, "id": owner.id, "name": owner.name}
    entry |= {"file": upload.file, "sha256": choice.digest, "order": upload.order}
    entry |= {"time": str(timestamp(stamp)[0])}
    if choice.state in ("older", "kept"):
        entry = before
    entry |= {"granted": choice.granted}
    if not entry.keys() > {"granted"}:
        return  # put here by hand, never collected
    path = course.progress(assignment) / "collected" / f"{learner}.json"
    storage.write(path, json.dumps(entry, indent=1))


def _enrol(course: Course, assignment: str, result: Plan) -> None:
    """Enter names, addresses and extensions into the gradebook."""
    there = {choice.person.learner: choice.person for choice in result.choices}
    everybody = {person.learner: person for person in result.people} | there
    due, before = _dates(course, assignment)
    extensions: dict[str, timedelta | None] = {
        choice.person.learner: None for choice in result.choices if choice.withdrawn
    }
    for person in there.values() if due else ():
        if person.extension:
            extensions[person.learner] = max(person.extension - due, timedelta(0)) or None
    changed = {name: more for name, more in sorted(extensions.items()) if more != before.get(name)}
    if changed:
        register(course, assignment)
    with open_gradebook(course) as gradebook:
        for learner, person in sorted(everybody.items()):
            names = {"first_name": person.first, "last_name": person.last, "email": person.email}
            names["lms_user_id"] = person.lms_id
            gradebook.update_or_create_student(
                learner, **{name: text for name, text in names.items() if text}
            )
        for name, more in changed.items():
            gradebook.update_or_create_submission(assignment, name, extension=more)


# --- the report


def tell(result: Plan, source: Source, assignment: str, done: bool) -> str:
    """The plan as text, for a terminal."""
    system = {"plain": "a folder of NAME.ipynb"}.get(result.layout, result.layout.capitalize())
    lines = [f"{source.shown}: {system}, {result.members} file{'s' * (result.members != 1)}"]
    states = defaultdict(list)
    for choice in result.choices:
        state = "verdict" if choice.stand_in and choice.state == "new" else choice.state
        when = f"{choice.when:%Y-%m-%d %H:%M} UTC" if choice.when else "time unknown"
        line = f"{choice.person.learner}: {_path(choice.upload)}  ({when})"
        states[state].append(line)
    late = [
        f"{choice.person.learner}: by "
        + ("how much is unknown" if result.layout == "canvas" else _span(choice.late))
        for choice in result.choices
        if choice.late
    ]
    withdrawn = [choice.person.learner for choice in result.choices if choice.withdrawn]
    parts = (
        ("taken" if done else "would be taken", states["new"]),
        ("not this assignment's notebook; graded, so that its author is told", states["verdict"]),
        (f"{'' if done else 'would be '}replaced; the earlier one is kept", states["replaces"]),
        ("the same file with another time, which counts from now on", states["retimed"]),
        ("there already, unchanged", states["same"]),
        ("not taken: older than what is there", states["older"]),
        ("left as you put it there; what is in the download was collected before", states["kept"]),
        ("late", late),
        ("extensions that the roster grants no more", withdrawn),
        ("extra files", result.extra),
        ("misnamed", result.misnamed),
        ("not matched to a learner, and not taken", result.unmatched),
        ("cannot be taken", result.unusable),
        ("in the roster, and nothing here", [", ".join(result.nothing)] if result.nothing else []),
        ("collected earlier, but missing from this download; they stay and are graded (if one was "
         f"withdrawn, delete submitted/NAME/{assignment})", result.gone),
        ("notes", result.notes),
    )  # fmt: skip
    for title, entries in parts:
        if entries:
            count = len(result.nothing) if entries == [", ".join(result.nothing)] else len(entries)
            lines += ["", f"{title} ({count}):", *(f"  {entry}" for entry in entries)]
    lines.append("")
    if not result.choices:
        lines.append(f"Nothing in it can be taken. Is this {assignment}, and the right ROSTER?")
    elif done:
        lines.append(f"Done. Grade them: make grade ASSIGNMENT={assignment}")
    else:
        lines.append("Nothing was written. The same command with DO=1 does it.")
    return "\n".join(lines)


def _span(late: timedelta) -> str:
    hours, rest = divmod(int(late.total_seconds()), 3600)
    return f"{hours // 24} d {hours % 24} h" if hours >= 24 else f"{hours} h {rest // 60} min"


def zone_of(name: str | None) -> tzinfo | None:
    """A time zone by its name, as in ``Europe/Berlin``; None, the machine's, for none.

    Raises:
        Refusal: if there is no such zone.
    """
    if not name:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise Refusal(
            f"there is no time zone {printable(name)!r}; one is written as Europe/Berlin, or UTC"
        ) from None


@storage.private_files()
def main(arguments: list[str] | None = None) -> int:
    """Show what would be collected, or collect it; return 0, or 2 if refused."""
    parser = argparse.ArgumentParser(
        prog="python -m grading.collect",
        description="Bring a download of Canvas, Moodle or Gradescope into submitted/.",
        epilog="Exit status: 0 shown or done, 2 refused.",
    )
    parser.add_argument("source", type=Path, metavar="FROM", help="the download: a zip or a folder")
    parser.add_argument("assignment", help="the name of a folder in solutions/")
    parser.add_argument("--roster", type=Path, metavar="CSV", help="who is in the course")
    parser.add_argument("--zone", metavar="ZONE", help="of times without one, as Europe/Berlin")
    parser.add_argument("--do", action="store_true", help="write; otherwise it is only shown")
    parser.add_argument(
        "--course", type=Path, default=Path.cwd(), metavar="DIR", help="the course's folder"
    )
    options = parser.parse_args(arguments)
    source = None
    try:
        course = Course.open(options.course)
        known(course, options.assignment)
        print(f"Assignment {options.assignment}", flush=True)
        zone = zone_of(options.zone)
        table = roster.read(options.roster) if options.roster else None
        source = Source(options.source, zone, options.roster)
        result = plan(course, options.assignment, source, table, zone)
        if options.do:
            do(course, options.assignment, source, result)
        print(tell(result, source, options.assignment, options.do))
    except Refusal as refusal:
        print(f"refused: {refusal}", file=sys.stderr)
        return 2
    finally:
        if source is not None:
            source.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
