"""Collect from nbgrader's exchange, a folder in which every account of the machine can write.

The folder ``inbound`` is open to all. What `nbgrader submit` puts there can also be made by hand:
with links in it, under a classmate's name, with any time in the folder's name and in
``timestamp.txt``. nbgrader follows the links with the grader's rights and believes the rest.
:class:`Collect` replaces it (``nbgrader_config.py``), for `nbgrader collect` and the formgrader
alike, and relies on what the kernel says instead:

- *Whose it is*: the folder and its files belong to the account that the folder is named after.
- *What it is*: regular files without a second name. They are opened from the folder's descriptor,
  no link is followed, and what is copied comes from the descriptor that was checked. Only the
  notebook, a few others beside it and nbgrader's secret are copied, each up to a size.
- *When it was handed in*: see :func:`handed_in`.

A folder that fails is left out, with a line in the log, and affects no other folder.
"""

import contextlib
import fnmatch
import heapq
import os
import pwd
import shutil
import stat
import tempfile
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.plugins import ExtractorPlugin

from grading.course import NAME
from grading.submission import MAX_BYTES, SECRET, printable, timestamp

STAMP = "%Y-%m-%d %H:%M:%S.%f UTC"  # nbgrader's format of the time in a folder's name
SLACK = timedelta(seconds=60)  # `nbgrader submit` reads the clock first and writes afterwards
FOLDERS = 100  # a learner's last ones, for one assignment; older ones are not looked at
LISTED = 1000  # entries of a folder that are looked at, and
OTHERS = 5  # notebooks of other names among them that are copied: they explain a missing one
MAX_LOGGED = 5  # lines about the folders of one account


class Refused(Exception):
    """A folder that `nbgrader submit` cannot have made; the message says why."""


def account(uid: int) -> str:
    """The name of the account with this user id."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}, which has no account"


def handed_in(claimed: str, changed: int) -> datetime:
    """When a submission was handed in (UTC).

    Only root can choose a ctime. The kernel sets it to the machine's time whenever a file's
    content, name, mode or modification time changes, and a folder's whenever an entry is added or
    removed. So a submission has been in the exchange, as it is now, since its latest ctime (but
    for a mapped file, which can be written to for half a minute, until the system saves it);
    renaming or touching it only makes it later. Its name, its modification time and
    ``timestamp.txt`` are its author's to choose. The time in the name is taken where it agrees
    with the ctime but for :data:`SLACK`, and the ctime otherwise.

    Args:
        claimed: the time in the folder's name.
        changed: the latest ctime of the folder and its files, in nanoseconds.
    """
    known = datetime(1970, 1, 1) + timedelta(microseconds=changed // 1000)
    try:
        named = datetime.strptime(claimed, STAMP)
    except ValueError:
        return known
    return named if abs(known - named) <= SLACK else known


def opened(stack: contextlib.ExitStack, name: str, parent: int | None, flags: int = 0) -> int:
    """Open a descriptor that the stack closes. Links are not followed, pipes not waited for."""
    flags |= os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(name, flags, dir_fd=parent)
    stack.callback(os.close, handle)
    return handle


def take(
    inbound: int, name: str, owner: str | None, notebook: str
) -> tuple[datetime, dict[str, bytes]]:
    """When a submission was handed in, and its files.

    Args:
        inbound: the descriptor of the exchange's folder.
        name: the name of the submission's folder in it.
        owner: the account that it has to belong to; None if all people share one account.
        notebook: the file that is asked for.

    Raises:
        Refused: if `nbgrader submit` cannot have made it.
        OSError: if it cannot be read.
    """
    with contextlib.ExitStack() as stack:
        folder = opened(stack, name, inbound, os.O_DIRECTORY)
        status = os.fstat(folder)
        if owner is not None and account(status.st_uid) != owner:
            raise Refused(f"it belongs to {account(status.st_uid)}")
        if status.st_dev != os.fstat(inbound).st_dev:
            raise Refused("it is on another disk")
        with os.scandir(folder) as entries:
            listed = sorted(entry.name for entry in islice(entries, LISTED))
        others = [file for file in listed if file.endswith(".ipynb") and file != notebook]
        files, changed = {}, []
        for file in (notebook, SECRET, *others[:OTHERS]):
            with contextlib.suppress(FileNotFoundError):
                files[file], when = _read(folder, file)
                changed.append(when)
        changed.append(os.fstat(folder).st_ctime_ns)
    return handed_in(name.split("+")[2], max(changed)), files


def _read(folder: int, name: str) -> tuple[bytes, int]:
    """A submission's file, cut off where it is too large, and its ctime after it was read."""
    home, shown = os.fstat(folder), printable(name)
    with contextlib.ExitStack() as stack:
        try:
            handle = opened(stack, name, folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            link = stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
            reason = "is a link" if link else f"cannot be opened ({error.strerror})"
            raise Refused(f"{shown} {reason}") from None
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{shown} is not a file")
        if status.st_uid != home.st_uid:
            raise Refused(f"{shown} belongs to {account(status.st_uid)}")
        if status.st_nlink != 1:
            raise Refused(f"{shown} has a second name (a hard link)")
        if status.st_dev != home.st_dev:
            raise Refused(f"{shown} is on another disk")
        with os.fdopen(os.dup(handle), "rb") as file:
            data = file.read(MAX_BYTES + 1)  # one more: then grading says that it is too large
        return data, os.fstat(handle).st_ctime_ns


class Collect(ExchangeCollect):
    """`nbgrader collect`, bound to the accounts of the machine.

    Where all people share one account, as on the trial hub (``docs/hub.md``), there is nothing to
    bind to: ``c.ExchangeCollect.check_owner = False`` takes a folder's name as it is.
    """

    def init_src(self) -> None:
        if not self.coursedir.course_id:
            self.fail("No course id specified. Re-run with --course flag.")
        self.inbound_path = os.path.join(self.root, self.coursedir.course_id, "inbound")
        self.duedate = None
        if self.before_duedate:
            with (
                contextlib.suppress(MissingEntry),
                Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook,
            ):
                self.duedate = gradebook.find_assignment(self.coursedir.assignment_id).duedate

    def copy_files(self) -> None:
        """Collect every learner's newest submission.

        Raises:
            ExchangeError: if there is no exchange, or a submission could not be written here.
        """
        self.refused: Counter[str] = Counter()  # folders that were left out, by their owner
        failed = []
        with contextlib.ExitStack() as stack:
            inbound = self._inbound(stack)
            by_learner = self._folders(inbound)
            if not by_learner:
                self.log.warning("No submissions of '%s' to collect", self.coursedir.assignment_id)
            for learner, folders in sorted(by_learner.items()):
                submission = self._newest(inbound, learner, folders)
                try:
                    if submission:
                        self._store(learner, *submission)
                except OSError as error:
                    failed.append(f"{learner} ({error})")
        for owner, count in self.refused.items():
            if count > MAX_LOGGED:
                self.log.error("%d more folders of %s are not collected", count - MAX_LOGGED, owner)
        if failed:
            self.fail(f"could not be written into the course's folder: {', '.join(failed)}")

    def _inbound(self, stack: contextlib.ExitStack) -> int:
        """A descriptor of the exchange's folder, which has to be the course's own."""
        trusted = {os.geteuid(), os.stat(self.coursedir.root).st_uid}
        try:
            place = opened(stack, os.path.realpath(self.root), None, os.O_DIRECTORY)
            for name in (self.coursedir.course_id, "inbound"):
                place = opened(stack, name, place, os.O_DIRECTORY)
                owner = os.fstat(place).st_uid
                if owner not in trusted and not self.coursedir.groupshared:
                    self.fail(f"{self.inbound_path}: {name} belongs to {account(owner)}")
        except OSError as error:
            self.fail(f"The exchange cannot be read: {self.inbound_path}: {error.strerror}")
        return place

    def _folders(self, inbound: int) -> dict[str, list[str]]:
        """Each learner's last folders for this assignment, the one that was changed last first."""
        by_learner = defaultdict(list)
        name_of = lru_cache(account)
        with os.scandir(inbound) as entries:
            for entry in entries:
                learner, *rest = entry.name.split("+")
                if len(rest) < 2 or rest[0] != self.coursedir.assignment_id:
                    continue
                if not fnmatch.fnmatchcase(learner, self.coursedir.student_id or "*"):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    owner = name_of(status.st_uid)
                    if not NAME.fullmatch(learner):
                        self._refuse(entry.name, owner, "nobody can have this name")
                    elif self.check_owner and owner != learner:
                        self._refuse(entry.name, owner, f"it belongs to {owner}")
                    elif not stat.S_ISDIR(status.st_mode):
                        self._refuse(entry.name, owner, "it is a link or a file")
                    else:
                        heapq.heappush(by_learner[learner], (status.st_ctime_ns, entry.name))
                        if len(by_learner[learner]) > FOLDERS:
                            heapq.heappop(by_learner[learner])
        return {
            learner: [name for _, name in sorted(by_learner[learner])[::-1]]
            for learner in by_learner
        }

    def _newest(
        self, inbound: int, learner: str, folders: list[str]
    ) -> tuple[datetime, dict[str, bytes]] | None:
        """A learner's newest submission that can be taken, or the newest that was in time."""
        newest = None
        for name in folders:
            owner = learner if self.check_owner else None
            try:
                taken = take(inbound, name, owner, f"{self.coursedir.assignment_id}.ipynb")
            except (Refused, OSError) as problem:
                self._refuse(name, learner, str(problem))
                continue
            if self.duedate is None or taken[0] <= self.duedate:
                return self._log_time(name, taken)
            newest = newest or (name, taken)
        return newest and self._log_time(*newest)

    def _log_time(self, name: str, taken: tuple[datetime, dict]) -> tuple[datetime, dict]:
        learner, _, claimed, *_ = map(printable, name.split("+"))
        if f"{taken[0]:{STAMP}}" != claimed:
            self.log.warning(
                "%s: handed in at %s by the exchange's clock; the name says %s",
                *(learner, f"{taken[0]:{STAMP}}", claimed),
            )
        return taken

    def _store(self, learner: str, when: datetime, files: dict[str, bytes]) -> None:
        """Put a submission into the course's folder if it is new; completely or not at all."""
        assignment = self.coursedir.assignment_id
        target = Path(
            self.coursedir.format_path(self.coursedir.submitted_directory, learner, assignment)
        )
        word = "Collecting"
        if os.path.lexists(target):
            before = timestamp(target / "timestamp.txt")[0]
            newer = before is None or when > before
            if not (self.update and newer) and not (self.before_duedate and when != before):
                known = "No newer submission to collect"
                if not self.update:
                    known = "Submission already exists, use --update to update"
                self.log.info("%s: %s %s", known, learner, assignment)
                return
            word = "Updating"
        self.log.info("%s submission: %s %s", word, learner, assignment)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as place:
            made = Path(place, assignment)
            made.mkdir()
            for name, data in files.items():
                (made / name).write_bytes(data)
            (made / "timestamp.txt").write_text(f"{when:{STAMP}}\n")
            if self.coursedir.groupshared:
                self.set_perms(made, 0o664, 0o2775)
            if word == "Updating":
                shutil.rmtree(target)
            made.rename(target)

    def _refuse(self, name: str, owner: str, reason: str) -> None:
        """Log that a folder is left out; only a few times for each account."""
        self.refused[owner] += 1
        if self.refused[owner] <= MAX_LOGGED:
            learner, path = printable(name.split("+")[0]), Path(self.inbound_path, printable(name))
            self.log.error("%s: not collected: %s: %s", learner, path, reason)


class Extractor(ExtractorPlugin):
    """The first half of `nbgrader zip_collect`: plain files are copied, archives are not unpacked.

    The author of an archive chooses every name in it, possibly a classmate's, and every size.
    nbgrader also copies what a link leads to, with the permissions of the person who collects.
    """

    def extract(self, archive_path: str, extracted_path: str) -> None:
        for root, _, names in os.walk(archive_path):
            for path in (Path(root, name) for name in sorted(names)):
                kind = "a link" if path.is_symlink() else "no file" * (not path.is_file())
                if kind or path.suffix in self.zip_ext:
                    self.log.error(
                        "left out: %s is %s", path, kind or "an archive; unpack it first"
                    )
                    continue
                copy = Path(extracted_path, path.relative_to(archive_path))
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy, follow_symlinks=False)
