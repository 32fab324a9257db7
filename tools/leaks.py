"""Search folders for hidden tests and solutions: ``python -m tools.leaks FOLDER ...``.

Run it before publishing a folder. It looks for lines of `solutions/` that learners must not get:
every line of a hidden test, and every solution, recognized by three consecutive lines, or by all of
its lines if there are fewer. Pages, notebooks, PDF files and (nested) archives are opened; file
names do not matter. Exit status: 0 nothing found, 1 something found, 2 nothing to search, or no way
to search it.
"""

import argparse
import html
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHORTEST = 24  # characters: a shorter line is too common to be evidence
RUN = 3  # consecutive lines of a solution; a shorter solution has to match as a whole
ARCHIVES = (".zip", ".whl", ".epub")
TAG = re.compile(r"<[^<>]*>")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')  # notebooks and scripts keep code in these

# Lines of hidden tests that anybody would write; the book contains them too.
COMMON = frozenset(
    {
        "c, s = math.cos(angle), math.sin(angle)",
        "expected[row, column, 2 * i + 1] = math.cos(phase)",
        "expected[row, column, 2 * i] = math.sin(phase)",
        "for dtype in (torch.float64, torch.bfloat16):",
        "for h in range(n_heads):",
    }
)


class Missing(Exception):
    """A program for opening some kind of file is missing; the message says how to get it."""


@dataclass(frozen=True)
class Leak:
    """A leaked line: the file it was found in, the assignment it is from, the line itself."""

    place: str
    assignment: str
    line: str

    def __str__(self) -> str:
        return f"{self.place}: of {self.assignment}: {self.line}"


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if line]


def _cells(path: Path) -> list[str]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"]]


def _regions(slug: str, what: str) -> Iterator[list[str]]:
    """The lines between the marks of this kind, region by region."""
    for source in _cells(ROOT / "solutions" / slug / f"{slug}.ipynb"):
        for region in re.findall(rf"### BEGIN {what}\n(.*?)### END {what}", source, re.DOTALL):
            yield _lines(region)


@cache
def released() -> frozenset[str]:
    """Every line of the released exercises."""
    paths = (ROOT / "exercises").glob("*/*.ipynb")
    return frozenset(line for path in paths for cell in _cells(path) for line in _lines(cell))


@cache
def public() -> frozenset[str]:
    """Every line of `lib`, which learners have too: a solution of one line may be there."""
    paths = (ROOT / "lib").rglob("*.py")
    return frozenset(line for path in paths for line in _lines(path.read_text(encoding="utf-8")))


@cache
def secrets() -> tuple[dict[str, str], dict[tuple[str, ...], str]]:
    """What to look for: lines of hidden tests and runs of solutions, each with its assignment."""
    hidden, runs = {}, {}
    for folder in sorted((ROOT / "solutions").glob("*/*.ipynb")):
        slug = folder.stem
        for region in _regions(slug, "HIDDEN TESTS"):
            for line in region:
                if len(line) >= SHORTEST and line not in released() | COMMON:
                    hidden.setdefault(line, slug)
        for region in _regions(slug, "SOLUTION"):
            length = min(RUN, len(region))
            known = released() | public() if length == 1 else released()
            for start in range(len(region) - length + 1):
                run = tuple(region[start : start + length])
                own = [line for line in run if len(line) >= SHORTEST and line not in known]
                if len(own) >= min(2, length):
                    runs.setdefault(run, slug)
    return hidden, runs


def texts(name: str, data: bytes) -> Iterator[tuple[str, str]]:
    """The texts of a file, each with a name; for an archive, the texts of every member."""
    if name.endswith(ARCHIVES):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                yield from texts(f"{name}!{member}", archive.read(member))
        return
    if name.endswith(".pdf"):
        yield name, _printed(name, data)
        return
    text = data.decode(errors="ignore")
    yield name, text
    if name.endswith((".html", ".xhtml")):
        yield name, html.unescape(TAG.sub("", text))
    if quoted := [_unquoted(literal) for literal in STRING.findall(text)]:
        yield name, "\n".join(quoted)


def _printed(name: str, data: bytes) -> str:
    """The text of a PDF file, line by line as laid out on the page."""
    if not shutil.which("pdftotext"):
        raise Missing(
            f"there is no pdftotext, which opens {name}: install it "
            "(Debian, Ubuntu: apt-get install poppler-utils)"
        )
    command = ["pdftotext", "-layout", "-", "-"]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode()


def _unquoted(text: str) -> str:
    """The value of a string literal of JSON or a script; empty if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return ""


def search(folder: Path) -> list[Leak]:
    """The leaks in a folder, one for each file and assignment.

    Raises:
        Missing: if there is a PDF file and no program to open it.
    """
    hidden, runs = secrets()
    leaks: dict[tuple[str, str], Leak] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        for name, text in texts(path.relative_to(folder).as_posix(), path.read_bytes()):
            lines = _lines(text)
            for line in lines:
                if line in hidden:
                    leaks.setdefault((name, hidden[line]), Leak(name, hidden[line], line))
            for start in range(len(lines)):
                for length in range(1, RUN + 1):
                    if slug := runs.get(run := tuple(lines[start : start + length])):
                        leaks.setdefault((name, slug), Leak(name, slug, " / ".join(run)))
    return list(leaks.values())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.leaks", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    folders = parser.parse_args(arguments).folders
    if empty := [folder for folder in folders if not any(folder.rglob("*"))]:
        print(f"nothing to search in {', '.join(map(str, empty))}", file=sys.stderr)
        return 2
    try:
        leaks = [(folder, leak) for folder in folders for leak in search(folder)]
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 2
    for folder, leak in leaks:
        print(f"{folder}/{leak}")
    if not leaks:
        print(f"no hidden test and no solution in {', '.join(map(str, folders))}")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
