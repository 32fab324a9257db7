"""Find submissions and read them without trusting them.

A submission is ``submitted/<learner>/<assignment>/<assignment>.ipynb``. Nothing of it reaches
nbgrader before it was read here: a file that plain nbgrader would stumble over (a link, a pipe,
half a file, another format) ends as a :class:`~grading.notebook.Reject` with a reason that its
author can understand, and harms nobody else. Other files in the folder are ignored, except
``timestamp.txt`` and what nbgrader's exchange needs to return feedback.
"""

import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.utils import parse_utc

from grading.notebook import Cell, Reject, match, parse

MAX_BYTES = 10 * 2**20
REMEDY = "Open it in JupyterLab, save it, and hand in the saved file."
# dateutil skips what it does not know, and opens a time zone that looks like a file.
DATE = re.compile(r"[A-Za-z0-9 :.,+-]+")
NO_ZONE = re.compile(r"(^|\s)[/.~:]|\.\.")
FIRST_YEAR, LAST_YEAR = 1970, 2199
OLD_NO_DATE = "timestamp.txt is no date, so it is unknown whether this is late"  # in old records
NO_DATE = (
    f"timestamp.txt is no date of the years {FIRST_YEAR} to {LAST_YEAR}, "
    "so it is unknown whether this is late"
)
SECRET = "submission_secret.txt"  # written by nbgrader's exchange


@dataclass(frozen=True)
class Submission:
    """A submitted file as it was found, before its content is looked at.

    Attributes:
        learner: the name of its folder.
        data: the file's bytes, or None if it cannot be read.
        problem: why it cannot be read, if so.
        timestamp: when it was handed in (UTC), if ``timestamp.txt`` says so.
        note: something the instructor should know about it.
        secret: under what name nbgrader's exchange returns feedback, if it came from there.
    """

    learner: str
    data: bytes | None
    problem: str = ""
    timestamp: datetime | None = None
    note: str = ""
    secret: str = ""

    @property
    def digest(self) -> str:
        """A hash of all that was handed in, to the byte: what records of edition 0 have."""
        rest = repr((self.problem, str(self.timestamp), self.note, self.secret)).encode()
        return hashlib.sha256(rest + b"\0" + (self.data or b"")).hexdigest()


def learners(submitted: Path, assignment: str) -> list[str]:
    """The names of all who have a folder for this assignment, sorted."""
    if not submitted.is_dir():
        return []
    # lexists: a link that leads nowhere is a submission too, and gets its reason.
    return sorted(
        entry.name
        for entry in os.scandir(submitted)
        if os.path.lexists(f"{entry.path}/{assignment}")
    )


def collect(folder: Path, learner: str, assignment: str) -> Submission:
    """Read one submission's files; never raises for what a learner can do."""
    name = f"{assignment}.ipynb"
    result = Submission(learner, None)
    try:
        for path in (folder.parent, folder):
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise Reject("The submission's folder is a link or a file. Hand in a real folder.")
        stamp, note = timestamp(folder / "timestamp.txt")
        result = replace(result, timestamp=stamp, note=note, secret=_secret(folder / SECRET))
        if not os.path.lexists(folder / name):
            names = sorted(set(os.listdir(folder)) - {"timestamp.txt", SECRET})
            listed = ", ".join(printable(name)[:80] for name in names[:5]) or "nothing"
            raise Reject(f"The file {name} is missing. The folder holds: {listed}.")
        return replace(result, data=_read(folder / name, MAX_BYTES))
    except Reject as reject:
        return replace(result, problem=str(reject))
    except OSError as error:
        return replace(result, problem=f"The file cannot be read: {error.strerror}.")
    except MemoryError:
        raise
    except Exception as error:  # something that nobody thought of costs its author, and nobody else
        return replace(result, problem=f"The files cannot be read ({type(error).__name__}).")


def cells(submission: Submission) -> list[Cell]:
    """The cells of a submission.

    Raises:
        Reject: if it cannot be read, or is no notebook; with the reason.
    """
    if submission.data is None:
        raise Reject(submission.problem)
    return parse(submission.data, REMEDY)


def content(cells: list[Cell] | Reject, submission: Submission, source: NotebookNode) -> str:
    """A hash of the work that was handed in.

    What an editor saves besides (outputs, counters, metadata, the order of keys, a cell id where
    none was) does not count, nor does the time. Of a file that is no notebook every byte counts.

    Args:
        cells: the cells, or why there are none.
        submission: where they come from.
        source: the instructor's notebook.
    """
    if isinstance(cells, Reject):
        text = repr((str(cells), submission.problem)).encode() + (submission.data or b"")
    else:
        names = match(cells, source)
        work = [(c.kind, c.source, n, c.pictures) for c, n in zip(cells, names, strict=True)]
        text = json.dumps(work, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()


def _read(path: Path, limit: int) -> bytes:
    """The bytes of a regular file; a link is not followed and a pipe is not waited for."""
    kind = os.lstat(path).st_mode
    if stat.S_ISLNK(kind):
        raise Reject(f"{path.name} is a link. Hand in the file itself.")
    if not stat.S_ISREG(kind):
        raise Reject(f"{path.name} is not a file.")
    # Should it be exchanged between the two calls, it is still neither followed nor waited for.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Reject(
            f"{path.name} is larger than {limit // 2**20} MB. Clear its outputs (in JupyterLab: "
            "Edit, Clear Outputs of All Cells), save it, and hand it in again."
        )
    return data


def timestamp(path: Path) -> tuple[datetime | None, str]:
    """What ``timestamp.txt`` says (UTC), and a note if it says nothing that can be used."""
    if not os.path.lexists(path):
        return None, ""
    try:
        text = _read(path, 100).decode().strip()
        plain = DATE.fullmatch(text) and not NO_ZONE.search(text)
        when = parse_utc(text) if plain else None
    except Exception:  # dateutil fails in ways of its own
        when = None
    # At the ends of time, zones cannot be changed.
    if when is None or not FIRST_YEAR <= when.year <= LAST_YEAR:
        return None, NO_DATE
    return when, ""


def _secret(path: Path) -> str:
    """The secret that nbgrader's exchange wrote; empty if there is none, or it is no such thing."""
    try:
        text = _read(path, 1000).decode("ascii")
    except (Reject, OSError, ValueError):
        return ""
    return text if re.fullmatch(r"[0-9a-f]{32,256}", text) else ""


def printable(text: str, *, keep: str = "") -> str:
    """Text that cannot steer a terminal: a ``?`` for every control character but those to keep."""
    return "".join(each if each.isprintable() or each in keep else "?" for each in text)
