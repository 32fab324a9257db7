"""Downloads and exports as Canvas, Moodle and Gradescope write them, made from their documents.

None of them was taken from a real service. The forms follow the systems' sources (Canvas, Moodle),
and what users' programs read (Gradescope); ``book/instructors/collect-and-return.md`` cites them.
"""

import csv
import io
import zipfile
from pathlib import Path

DAY = (2026, 3, 1, 12, 0, 0)


def pack(path: Path, files: dict[str, bytes], times: dict[str, tuple] | None = None) -> Path:
    """A zip of these files; ``times`` says when one was changed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, (times or {}).get(name, DAY))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            archive.writestr(info, data)
    return path


def unpack(path: Path, target: Path) -> Path:
    """The same as a folder, as an instructor unpacks it."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(target)
    return target


def table(
    path: Path, rows: list[list[str]], *, bom=False, end="\n", delimiter=",", sep=False
) -> Path:
    """A CSV file; ``sep``: with the line for Excel that names the delimiter."""
    text = io.StringIO()
    text.write(f"sep={delimiter}{end}" * sep)
    csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(rows)
    path.write_bytes(b"\xef\xbb\xbf" * bom + text.getvalue().encode())
    return path


WORKSHEET = [
    "Identifier",
    "Full name",
    "Email address",
    "Status",
    "Grade",
    "Maximum Grade",
    "Grade can be changed",
    "Last modified (submission)",
    "Last modified (grade)",
    "Feedback comments",
]


def worksheet_row(number, name, email, when="-", *, status="", most="5.00", change="Yes"):
    """A participant's row in Moodle's grading worksheet."""
    status = status or ("Submitted for grading" if when != "-" else "No submission")
    return [f"Participant {number}", name, email, status, "", most, change, when, "-", ""]


GRADEBOOK = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
POINTS = "    Points Possible"
