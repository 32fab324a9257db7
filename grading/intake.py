"""Find submissions and read them without trusting them.

A submission is ``submitted/<learner>/<assignment>/<assignment>.ipynb``. Nothing of it reaches
nbgrader before it was read here: a file that plain nbgrader would stumble over (a link, a pipe,
half a file, another format) ends as a :class:`Reject` with a reason that its author can understand,
and harms nobody else. Other files in the folder are ignored, but for ``timestamp.txt`` and what
nbgrader's exchange needs to return feedback.
"""

import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

MAX_BYTES = 10 * 2**20
MAX_CELLS = 2000
SECRET = "submission_secret.txt"  # written by nbgrader's exchange
KINDS = ("code", "markdown", "raw")


class Reject(Exception):
    """This submission gets no points; the message tells its author why, and what to do."""


@dataclass(frozen=True)
class Cell:
    """What is kept of a learner's cell: no outputs, no attachments, no metadata but two names.

    Attributes:
        kind: ``code``, ``markdown`` or ``raw``.
        source: the text.
        grade_id: nbgrader's name of the cell, if it has one.
        cell_id: the notebook format's own name of the cell, if it has one.
    """

    kind: str
    source: str
    grade_id: str | None
    cell_id: str | None


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
        """A hash of all that was handed in."""
        told = repr((self.problem, str(self.timestamp), self.note, self.secret)).encode()
        return hashlib.sha256(told + b"\0" + (self.data or b"")).hexdigest()


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
    found = Submission(learner, None)
    try:
        for path in (folder.parent, folder):
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise Reject("The submission's folder is a link or a file. Hand in a real folder.")
        stamp, note = timestamp(folder / "timestamp.txt")
        found = replace(found, timestamp=stamp, note=note, secret=_secret(folder / SECRET))
        if not os.path.lexists(folder / name):
            names = sorted(set(os.listdir(folder)) - {"timestamp.txt", SECRET})
            held = ", ".join(map(_printable, names[:5])) or "nothing"
            raise Reject(f"The file {name} is missing. The folder holds: {held}.")
        return replace(found, data=_read(folder / name, MAX_BYTES))
    except Reject as reject:
        return replace(found, problem=str(reject))
    except OSError as error:
        return replace(found, problem=f"The file cannot be read: {error.strerror}.")


def parse(data: bytes) -> list[Cell]:
    """The cells of a notebook.

    Args:
        data: the bytes of an ``.ipynb`` file, format 4.

    Raises:
        Reject: if they are not one, with the reason.
    """
    again = "Open it in JupyterLab, save it, and hand in the saved file."
    if not data.strip():
        raise Reject(f"The file is empty. {again}")
    try:
        # utf-8-sig: some Windows editors put a byte order mark in front.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Reject(f"The file is not UTF-8 text (byte {error.start}). {again}") from None
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise Reject(f"The file is nested too deeply to be a notebook. {again}") from None
    except ValueError as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise Reject(
            f"The file is not a complete notebook: its JSON is broken{where}. Perhaps it was cut "
            f"off, or edited as text. {again}"
        ) from None
    if not isinstance(notebook, dict) or "nbformat" not in notebook:
        raise Reject(f"The file is JSON, but not a notebook. {again}")
    if notebook["nbformat"] != 4:
        version = notebook["nbformat"]
        shown = version if isinstance(version, int) and abs(version) < 1000 else "unknown"
        raise Reject(f"The notebook has format {shown}, and format 4 is needed. {again}")
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise Reject(f"The notebook has no list of cells. {again}")
    if len(cells) > MAX_CELLS:
        raise Reject(f"The notebook has {len(cells)} cells, and at most {MAX_CELLS} are accepted.")
    return [_cell(number, cell) for number, cell in enumerate(cells, 1)]


def _cell(number: int, cell: object) -> Cell:
    if not isinstance(cell, dict) or cell.get("cell_type") not in KINDS:
        raise Reject(f"Cell {number} of the notebook is of no known kind.")
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise Reject(f"Cell {number} of the notebook has no text.")
    try:
        source.encode()
    except UnicodeEncodeError:
        raise Reject(f"Cell {number} holds a character that is no text. Delete it.") from None
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = marks.get("grade_id") if isinstance(marks, dict) else None
    cell_id = cell.get("id")
    return Cell(
        cell["cell_type"],
        source,
        grade_id if isinstance(grade_id, str) else None,
        cell_id if isinstance(cell_id, str) else None,
    )


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
        return parse_utc(_read(path, 100).decode().strip()), ""
    except (Reject, OSError, ValueError, OverflowError):
        return None, "timestamp.txt is no date, so it is unknown whether this is late"


def _secret(path: Path) -> str:
    """The secret that nbgrader's exchange wrote; empty if there is none, or it is no such thing."""
    try:
        text = _read(path, 1000).decode("ascii")
    except (Reject, OSError, ValueError):
        return ""
    return text if re.fullmatch(r"[0-9a-f]{32,256}", text) else ""


def _printable(text: str) -> str:
    """A file name that cannot steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)[:80]
