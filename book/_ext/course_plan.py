"""The directive ``course-plan``: weeks with the minutes that chapters and exercises say.

Its content is YAML, one entry for each week::

    - {read: {01-attention: all, 05-rope: easy}, build: [01-attention], ask: What does √d_k do?}

``read`` names chapters, each with ``all`` of its sections or the difficulties to read, as ``easy
moderate``; ``build`` names exercises, ``pages`` other pages of the book, ``ask`` is a topic for the
class. A chapter's minutes are those below the headings of its sections, an exercise's and a page's
those in its first cell, so the table follows when they change. Exercises are read from
``exercises/``.
"""

import json
import re
from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SECTION = re.compile(r"^\*(\d+) minutes? · (easy|moderate|hard)\*$", re.MULTILINE)
TIME = re.compile(r"\*\*Time:\*\* (?:about )?(\d+)(?: to (\d+))? minutes")
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


class CoursePlan(SphinxDirective):
    """Draw a plan as a table, with a sum below."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        try:
            table, files = plan(root, yaml.safe_load("\n".join(self.content)))
        except ValueError as problem:
            raise self.error(f"course-plan: {problem}") from None
        for path in files:
            self.env.note_dependency(str(path))
        box = nodes.container(classes=["course-plan"])
        lines = StringList(table.splitlines(), self.env.docname)
        self.state.nested_parse(lines, self.content_offset, box)
        return [box]


def text_of(path: Path) -> str:
    """The Markdown of a notebook.

    Raises:
        ValueError: if there is no such file.
    """
    if not path.is_file():
        raise ValueError(f"there is no {path.parent.name}/{path.name}")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return "\n\n".join(texts)


def reading(text: str, which: str = "all") -> int:
    """The minutes of a chapter's sections.

    Args:
        text: the chapter's Markdown.
        which: ``all``, or the difficulties of the sections to count.

    Raises:
        ValueError: if there are none.
    """
    minutes = [
        int(number) for number, level in SECTION.findall(text) if level in which or which == "all"
    ]
    if not minutes:
        raise ValueError(f"no section is marked {which!r}")
    return sum(minutes)


def building(text: str) -> tuple[int, int]:
    """The minutes that an exercise or another page takes, from and to.

    Raises:
        ValueError: if it does not say.
    """
    match = TIME.search(text)
    if match is None:
        raise ValueError("an exercise or a page does not say how long it takes")
    return int(match[1]), int(match[2] or match[1])


def minutes(low: int, high: int) -> str:
    """A number of minutes, or a range."""
    return f"{low}" if low == high else f"{low} to {high}"


def plan(root: Path, weeks: list[dict]) -> tuple[str, list[Path]]:
    """The table as Markdown, and the files that it depends on.

    Raises:
        ValueError: if a chapter, an exercise or a time is missing.
    """
    rows = [
        "| Week | Read | Minutes | Build | Minutes to build | In class |",
        "| --: | --- | --: | --- | --: | --- |",
    ]
    files: list[Path] = []
    read_in_all, least, most = 0, 0, 0
    for number, week in enumerate(weeks, 1):
        chapters, read = [], 0
        for slug, which in week.get("read", {}).items():
            path = root / "book" / f"{slug}.ipynb"
            text = text_of(path)
            files.append(path)
            read += reading(text, which)
            part = "" if which == "all" else f" ({' and '.join(which.split())} sections)"
            title = TITLE.search(text)[1]
            chapters.append(f"[{int(slug[:2])}. {title}](/book/{slug}.ipynb){part}")
        tasks, low, high = [], 0, 0
        work = [
            *(root / "exercises" / slug / f"{slug}.ipynb" for slug in week.get("build", [])),
            *(root / "book" / f"{name}.ipynb" for name in week.get("pages", [])),
        ]
        for path in work:
            text = text_of(path)
            first, last = building(text)
            files.append(path)
            low, high = low + first, high + last
            if path.parent.name == "book":
                tasks.append(f"[{TITLE.search(text)[1]}](/book/{path.name})")
            else:
                tasks.append(f"exercise {path.stem[:2]}")
        read_in_all, least, most = read_in_all + read, least + low, most + high
        cells = [number, ", ".join(chapters), read or "", ", ".join(tasks)]
        cells += [minutes(low, high) if high else "", week.get("ask", "")]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    hours = f"{(read_in_all + least) / 60:.0f} to {(read_in_all + most) / 60:.0f} hours in all"
    total = f"| | **All weeks** | **{read_in_all}** | | **{minutes(least, most)}** | {hours} |"
    return "\n".join([*rows, total]), files


def setup(app: Sphinx) -> dict:
    app.add_directive("course-plan", CoursePlan)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
