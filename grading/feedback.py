"""The page that a learner gets back: what came of their work, in words, and the work itself.

The first screen has the name, the score, how late it was, each task, and for each failure what the
check says with the learner's line. The notebook follows, the learner's cells open and the given
ones folded. The page is one file of at most :data:`MAX_BYTES`: it runs no script, makes no network
request, and holds neither the source of hidden tests nor their tracebacks.

The classes are also named in ``nbgrader_config.py``, so that `nbgrader generate_feedback`, after
scores were given by hand, makes the same page from the graded copy.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from types import EllipsisType
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape
from nbconvert.exporters import Exporter
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import ClearHiddenTests
from nbgrader.utils import is_grade, is_locked, is_solution, is_task
from traitlets.config import Config

from grading import rendering
from grading.submission import printable

MAX_BYTES = 100_000  # of a page; what is least needed is left out first
MAX_MESSAGE = 1200  # bytes of HTML of what a check says
MAX_REPEATED = 300  # the same, in the notebook, where it stands again
MAX_STOPPED = 5  # of the learner's cells that ended in an error, on the first screen
FIRST_OUTPUTS, LAST_OUTPUTS = 8, 2  # of a cell with a great many
MAX_HINTS = 3  # for a task
HIDDEN = "# (hidden tests ran here)"
BLANK = "No response."  # nbgrader's comment on an answer that is as it was released
NOT_WRITTEN = "Nothing is filled in here yet."
# What a test says of an answer: probe.check and the judge write these.
PLACE = re.compile(r"\n?in line (\d{1,6}) of the cell, in `([^`\n]*)`: (.*)")
UNWRITTEN = re.compile(r"Nothing filled in yet in `\w{1,100}`\.")
FRAME = re.compile(r"^\s*Cell In\[(\d+)\], line (\d{1,6})", re.MULTILINE)
TITLE = re.compile(r"^(#{1,4}) +(.+?) *#*$", re.MULTILINE)
DEFINED = re.compile(r"^def (\w+)", re.MULTILINE)
QUOTED = re.compile(r"`([^`\n]{1,100})`")
MARKUP = re.compile(r"[$`*\\{}#]|\]\([^)]*\)|^[|>\s-]+|(?<!\w)_|_(?!\w)")
LINK = re.compile(r"https?://[^\s\"'<>]{1,500}")
# The page's notes in place of what does not fit, in the order in which things are left out.
GIVEN, TEST, OUTPUT, ANSWER = range(4)
LEFT_OUT = {
    GIVEN: "[Left out to keep this page small: it is as in the notebook that you were given.]",
    TEST: "[Left out to keep this page small: the test is in the notebook that you were given.]",
    OUTPUT: "[Left out to keep this page small: the notebook that you handed in shows it.]",
    ANSWER: "[The rest is left out to keep this page small: it is in the notebook you handed in.]",
}
WRAPPER = 100  # bytes around a cell
PREVIEW = 1200  # characters that are shown of an answer that is left out

# The browser runs no script and makes no request, neither ours nor the submission's.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'"
HERE = Path(__file__).parent
TEMPLATES = Environment(
    loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
STYLE = Markup(re.sub(r"\s*\n\s*", "\n", (HERE / "feedback.css").read_text(encoding="utf-8")))


class Hint(NamedTuple):
    """What a failure looks like, shown below it.

    Attributes:
        text: a sentence for the learner, as plain text.
        link: where to read more, an address with http or https; empty for none.
    """

    text: str
    link: str = ""


def add_hints(notebook: NotebookNode, hints: dict[str, list[Hint]]) -> None:
    """Have the page of a graded notebook show hints below its failed tasks.

    They are kept in the notebook's metadata, hence in the graded copy, so that every later page
    shows them too.

    Args:
        notebook: the graded notebook; it is changed.
        hints: for graded cells by name; those of a cell that passed are not shown, and of each
            the first :data:`MAX_HINTS` are.
    """
    notebook.metadata["hints"] = {
        name: [list(hint) for hint in each] for name, each in hints.items()
    }


@dataclass(frozen=True)
class About:
    """What the gradebook says of a submission, for the head of its page.

    Attributes:
        name: the learner's first and last name; the id if they are not known.
        handed_in: when, as ``2026-03-01 12:00 UTC``; empty if not known.
        due: until when it was due, in the same form; empty if there is no such date.
        late: by how many seconds it came later.
        waiting: the graded cells that somebody still has to grade by hand.
    """

    name: str = ""
    handed_in: str = ""
    due: str = ""
    late: float = 0.0
    waiting: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        handed_in: datetime | None,
        due: datetime | None,
        waiting: Iterable[str] = (),
    ) -> "About":
        """The same from times (UTC), None where there is none."""
        late = max(0.0, (handed_in - due).total_seconds()) if handed_in and due else 0.0
        return cls(printable(name)[:200], _time(handed_in), _time(due), late, tuple(waiting))


def about(
    gradebook: Gradebook,
    assignment: str,
    learner: str,
    handed_in: datetime | EllipsisType | None = ...,
) -> About:
    """What is known of a submission.

    Args:
        gradebook: nbgrader's, open.
        assignment: which assignment.
        learner: whose.
        handed_in: when (UTC), None if not known; left out, what the gradebook says.
    """
    name, waiting, due = learner, (), gradebook.find_assignment(assignment).duedate
    try:
        student = gradebook.find_student(learner)
        name = " ".join(filter(None, [student.first_name, student.last_name])) or learner
        entry = gradebook.find_submission(assignment, learner)
        due = entry.duedate  # with an extension, if any
        handed_in = entry.timestamp if handed_in is ... else handed_in
        grades = [grade for notebook in entry.notebooks for grade in notebook.grades]
        waiting = [each.name for each in grades if each.auto_score is each.manual_score is None]
    except MissingEntry:
        pass
    return About.of(name, None if handed_in is ... else handed_in, due, waiting)


def _time(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC" if when else ""


class HideTests(ClearHiddenTests):
    """Take hidden tests out of the feedback, and keep what they say.

    A frame of a test cell in a traceback shows the lines around it, so of a graded cell's error the
    message alone stays.
    """

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int):
        if not is_grade(cell):
            return cell, resources
        if self._remove_hidden_test_region(cell):
            cell.source = f"{cell.source.rstrip()}\n{HIDDEN}"
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.traceback = [_message(output)]
        return cell, resources


def _message(output: NotebookNode) -> str:
    """What a failing test says."""
    text = strip_ansi("\n".join(map(str, output.traceback)))
    place = PLACE.search(text)
    message = output.evalue or "a test failed"
    if output.ename == "NotImplementedError" and not output.evalue:
        match = UNWRITTEN.search(text)
        message = match[0] if match else NOT_WRITTEN
    elif output.ename not in ("AssertionError", "Stopped"):
        message = f"{output.ename}: {message}"
    return message if place is None or PLACE.search(message) else f"{message}{place[0]}"


class FeedbackExporter(Exporter):
    """The page, for `nbgrader generate_feedback`: from the graded copy and the gradebook."""

    file_extension = ".html"

    def _init_preprocessors(self):
        """Only nbgrader's: some preprocessors that nbconvert adds are slow on unusual text."""

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kw):
        nb, resources = super().from_notebook_node(nb, resources, **kw)
        known = resources["nbgrader"]
        with Gradebook(known["db_url"]) as gradebook:
            details = about(gradebook, known["assignment"], known["student"])
        scores = known["score"], known["max_score"], known["late_penalty"]
        return _page(nb, known["assignment"], *scores, details), resources


def page(
    notebook: NotebookNode,
    assignment: str,
    *,
    points: dict[str, float],
    max_score: float,
    penalty: float,
    comments: dict[str, str],
    about: About,
    config: Config,
    server: str = "",
) -> str:
    """The page for a graded notebook, as HTML of at most :data:`MAX_BYTES`.

    Args:
        notebook: with outputs, and hints if there are any (:func:`add_hints`); it is changed.
        assignment: which assignment.
        points: what each graded cell counts.
        max_score: of the assignment.
        penalty: points that being late costs.
        comments: what is said of a cell.
        about: what the gradebook says of the submission.
        config: the course's configuration.
        server: the address of a fork server for :mod:`grading.rendering`.
    """
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if is_solution(cell) or is_task(cell):
            marks["comment"] = comments.get(marks["grade_id"])
        if is_grade(cell) or is_task(cell):
            marks["score"] = points.get(marks["grade_id"], 0.0)
    notebook, _ = HideTests(config=config).preprocess(notebook, {})
    score = sum(points.values()) - penalty
    return _page(notebook, assignment, score, max_score, penalty, about, server)


def refusal(reason: str) -> NotebookNode:
    """The notebook shown in place of a submission that gets no points; it says why."""
    # The reason may quote a file's name. As numbers, characters are neither Markdown nor HTML.
    plain = "".join(c if c.isalnum() or c in " .,:" else f"&#{ord(c)};" for c in reason)
    text = f"**No points: this submission could not be graded.**\n\n{plain}"
    made = new_notebook(cells=[new_markdown_cell(text, id="reason")])
    made.metadata["refused"] = reason
    return made


# --- the outcome of each cell


@dataclass
class Piece:
    """HTML of a cell, and what may stand in its place if the page gets too large."""

    html: str
    rank: float
    instead: str
    shown: bool = True


class Line(NamedTuple):
    """A line of the learner's: in which cell (by its index), which (from 1), and its text."""

    cell: int
    number: int
    text: str

    @property
    def id(self) -> str:
        return f"line-{self.cell}-{self.number}"


@dataclass
class Part:
    """A cell as the page shows it.

    Attributes:
        number: the cell's index.
        kind: ``given``, ``answer`` (the learner's) or ``test`` (also what a person grades).
        name: nbgrader's name; empty if it has none.
        heading: the section of the release in which it stands.
        label: what a folded cell is about.
        state: of a graded cell, ``passed``, ``failed``, ``partly`` or ``waiting``.
        score: of a graded cell.
        points: of a graded cell, at most.
        message: what a failing check or an error says; empty for none.
        line: the learner's line that it names.
        hints: to be shown below the failure.
        comment: what a person said, as HTML.
        blank: whether the answer is as it was released.
        source: the cell's text, as HTML.
        outputs: of a cell that ran, without the message.
        code: whether it is code.
    """

    number: int
    kind: str
    name: str = ""
    heading: str = ""
    label: str = ""
    state: str = ""
    score: float = 0.0
    points: float = 0.0
    message: str = ""
    line: Line | None = None
    hints: list[Hint] = field(default_factory=list)
    comment: str = ""
    blank: bool = False
    source: Piece | None = None
    outputs: list[Piece] = field(default_factory=list)
    code: bool = True

    @property
    def graded(self) -> bool:
        return bool(self.state)

    @property
    def repeated(self) -> str:
        """The message as the notebook repeats it."""
        return _cut(self.message, MAX_REPEATED)

    @property
    def open(self) -> bool:
        """Whether the notebook shows it without being asked."""
        return self.kind == "answer" or self.state in ("failed", "partly", "waiting")


def _page(
    notebook: NotebookNode,
    assignment: str,
    score: float,
    max_score: float,
    penalty: float,
    about: About,
    server: str = "",
) -> str:
    refused = notebook.metadata.get("refused", "")
    parts = [] if refused else _parts(notebook, about, server)
    titles = [heading for cell in notebook.cells if _given(cell) for heading in _titles(cell, 1)]
    graded = [part for part in parts if part.graded]
    values = {
        "policy": POLICY,
        "style": STYLE,
        "assignment": assignment,
        "title": titles[0] if titles else assignment,
        "about": about,
        "late": _duration(about.late),
        "score": score,
        "max_score": max_score,
        "penalty": penalty,
        "refused": printable(str(refused))[:2000],
        "note": str(notebook.metadata.get("note", "")),
        "graded": graded,
        "sections": [(title, list(each)) for title, each in groupby(graded, lambda p: p.heading)],
        "passed": sum(part.state == "passed" for part in graded),
        "waiting": sum(part.state == "waiting" for part in graded),
        "stopped": [part for part in parts if part.kind == "answer" and part.message][:MAX_STOPPED],
        "failed": [part for part in graded if part.state in ("failed", "partly") and part.message],
        "comments": [part for part in parts if part.comment],
        "parts_left_out": lambda: sum(not part.source.shown for part in parts),
        "groups": [(kind, list(each)) for kind, each in groupby(parts, lambda p: p.kind)],
    }
    return _fitted(TEMPLATES.get_template("feedback.html.j2"), values, parts)


def _fitted(template, values: dict, parts: list[Part]) -> str:
    """The page, shortened until it is small enough; what is least needed goes first."""
    pieces = [piece for part in parts for piece in [part.source, *part.outputs] if piece]
    waiting = sorted(pieces, key=lambda piece: (piece.rank, -len(piece.html)))
    # Last of all, whole cells that no test uses: a notebook may have a great many.
    extra = [part for part in reversed(parts) if part.kind == "answer" and not part.name]
    while True:
        made = template.render(**values)
        excess = len(made.encode()) - MAX_BYTES
        if excess <= 0 or not (waiting or extra):
            return made
        while excess > 0 and waiting:
            piece = waiting.pop(0)
            excess -= max(0, len(piece.html.encode()) - len(piece.instead.encode()))
            piece.html = min(piece.html, piece.instead, key=len)
        while excess > 0 and extra:
            part = extra.pop(0)
            excess -= len(part.source.html.encode()) + WRAPPER
            part.source.shown = False


def _parts(notebook: NotebookNode, about: About, server: str) -> list[Part]:
    shown = rendering.view(notebook, server, brief=True).cells
    hints = notebook.metadata.get("hints", {})
    parts, heading = [], ""
    for number, (cell, drawn) in enumerate(zip(notebook.cells, shown, strict=True)):
        if _given(cell):
            heading = next(reversed(_titles(cell, 2)), heading)
        part = _part(number, cell, drawn, about)
        part.heading = heading
        _judge(part, notebook, cell, hints)
        parts.append(part)
    named = {part.line for part in parts if part.line}
    for part in parts:
        if part.kind == "answer" and part.code:
            lines = {line.number: line.id for line in named if line.cell == part.number}
            part.source.html = _numbered(part.source.html, lines)
    return parts


def _part(number: int, cell: NotebookNode, drawn: NotebookNode, about: About) -> Part:
    marks = cell.metadata.get("nbgrader", {})
    part = Part(
        number, "answer", str(marks.get("grade_id") or ""), code=cell.cell_type != "markdown"
    )
    if is_grade(cell) or is_task(cell):
        part.kind = "answer" if is_solution(cell) else "test"
        part.score, part.points = _number(marks.get("score")), _number(marks.get("points"))
        part.state = _state(part, about)
    elif _given(cell):
        part.kind, part.label = "given", _label(cell)
    comment = marks.get("comment")
    part.blank = comment == BLANK
    part.comment = "" if part.blank else drawn.metadata.get("nbgrader", {}).get("comment", "")
    rank = {"given": GIVEN, "test": TEST}.get(part.kind, ANSWER)
    instead = str(escape(LEFT_OUT[rank]))
    if rank == ANSWER:
        note = f"\n{instead}" if len(cell.source) > PREVIEW else ""
        instead = f"{escape(cell.source[:PREVIEW])}{note}"
        instead = instead if part.code else f"<pre>{instead}</pre>"
    order = rank + 0.5 * (rank == GIVEN and not part.code)  # given code goes before given text
    part.source = Piece(drawn.source, order, instead)
    failed = is_grade(cell) and any(each.output_type == "error" for each in cell.get("outputs", []))
    outputs = [
        Piece(_output(output), OUTPUT, f"<p>{escape(LEFT_OUT[OUTPUT])}</p>")
        for output in drawn.get("outputs", [])
        if not (failed and output.output_type == "error")  # the message says it
    ]
    middle = outputs[FIRST_OUTPUTS:-LAST_OUTPUTS]
    if len(middle) > 1:
        note = f"<p>{escape(f'[… {len(middle):,} outputs of this cell are left out here.]')}</p>"
        outputs[FIRST_OUTPUTS:-LAST_OUTPUTS] = [Piece(note, OUTPUT, note)]
    part.outputs = outputs
    return part


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _state(part: Part, about: About) -> str:
    if part.name in about.waiting:
        return "waiting"
    if part.score >= part.points:
        return "passed"
    return "partly" if part.score > 0 else "failed"


def _output(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return f'<pre class="out">{output.text}</pre>'
    if output.output_type == "error":
        return f'<pre class="out">{output.traceback[0]}</pre>'
    if "text/plain" in output.data:
        return f'<pre class="out">{output.data["text/plain"]}</pre>'
    return f'<div class="out text">{output.data.get("text/html", "")}</div>'


def _judge(part: Part, notebook: NotebookNode, cell: NotebookNode, hints: object) -> None:
    """Say what went wrong in a cell, in which line, and what it looks like."""
    errors = [each for each in cell.get("outputs", []) if each.output_type == "error"]
    if not errors or part.kind == "given" or part.state == "passed":
        return
    if is_grade(cell):
        text = str(errors[0].traceback[0])
        place = PLACE.search(text)
        if place:
            part.line = _line(notebook, int(place[1]), place[3].strip(), place[2])
            text = text if part.line is None else text.replace(place[0], "", 1)
    else:
        text = strip_ansi("\n".join(map(str, errors[0].traceback)))
        numbers = [int(frame[2]) for frame in FRAME.finditer(text)]
        lines = cell.source.split("\n")
        for number in reversed(numbers):
            if 0 < number <= len(lines) and lines[number - 1].strip():
                if lines[number - 1].strip() in text:
                    part.line = Line(part.number, number, lines[number - 1].strip()[:300])
                    break
        evalue = re.sub(r" \(<ipython-input[^)]*\)$", "", str(errors[0].evalue))
        text = f"{errors[0].ename}: {evalue}"
        if not part.name:
            part.label = "a cell of yours"
    part.message = _cut(text.strip())
    given = hints.get(part.name, []) if isinstance(hints, dict) else []
    part.hints = [
        Hint(str(text)[:500], link if LINK.fullmatch(str(link)) else "")
        for text, link in given[:MAX_HINTS]
    ]


def _line(notebook: NotebookNode, number: int, text: str, function: str) -> Line | None:
    """The learner's line with this number and text; of several, that of the named function."""
    candidates = []
    for place, cell in enumerate(notebook.cells):
        lines = cell.source.split("\n")
        if cell.cell_type != "code" or _given(cell) or is_grade(cell) or number > len(lines):
            continue
        if text and lines[number - 1].strip()[:300] == text:
            named = re.search(rf"\bdef {re.escape(function)}\b", cell.source) is not None
            candidates.append((named, Line(place, number, text)))
    return max(candidates, default=(False, None))[1]


def _cut(text: str, room: int = MAX_MESSAGE) -> str:
    """The text cut to so many bytes of HTML, with a note where something is left out."""
    start = printable(text[:room], keep="\n")
    while len(str(escape(start)).encode()) > room:
        start = start[: len(start) * 3 // 4]
    left_out = len(text) - len(start)
    return f"{start} [… {left_out:,} characters left out]" if left_out else start


def _given(cell: NotebookNode) -> bool:
    """Whether a cell is the instructor's, as it was given, and not graded."""
    if is_grade(cell) or is_solution(cell) or is_task(cell):
        return False
    return is_locked(cell) or cell.metadata.get("given") is True


def _titles(cell: NotebookNode, level: int) -> list[str]:
    """The headings of a cell: of this level, 1 or 2 and deeper."""
    if cell.cell_type != "markdown":
        return []
    headings = TITLE.findall(cell.source)
    return [_words(text) for signs, text in headings if min(2, len(signs)) == level]


def _label(cell: NotebookNode) -> str:
    """What a given cell is about: its heading, its name, or how it begins."""
    headings = TITLE.findall(cell.source) if cell.cell_type == "markdown" else []
    if headings:
        return _words(headings[0][1])
    defined = DEFINED.search(cell.source) if cell.cell_type == "code" else None
    if name := cell.metadata.get("nbgrader", {}).get("grade_id") or (defined and defined[1]):
        return f"code: {printable(str(name))[:60]}"
    lines = [line for line in cell.source.split("\n") if line.strip()]
    return _words(lines[0]) if lines else ""


def _words(text: str) -> str:
    text = " ".join(printable(MARKUP.sub("", text.replace("\t", " "))).split())
    return text if len(text) <= 70 else f"{text[:68].rsplit(' ', 1)[0]} …"


def _numbered(html: str, marked: dict[int, str]) -> str:
    """Code with a box for each line, and a mark on the lines that a failure names."""
    lines = html.rstrip("\n").split("\n")
    if any(line.count("<span") != line.count("</span") for line in lines):
        return html
    made = []
    for number, line in enumerate(lines, 1):
        if number in marked:
            made.append(f'<mark id="{marked[number]}" class="l">{line}\n</mark>')
        else:
            made.append(f'<span class="l">{line}\n</span>')
    return "".join(made)


UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60))


def _duration(seconds: float) -> str:
    """In words, to two units: ``1 day 3 hours``."""
    words: list[str] = []
    for unit, size in UNITS:
        count, seconds = divmod(int(seconds), size)
        if count:
            words.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(words[:2]) or "less than a minute"


def _points(value: float) -> str:
    return f"{round(float(value), 2):g}"


def _quoted(text: str) -> Markup:
    """Plain text as HTML: what is between backquotes is code."""
    return Markup(QUOTED.sub(r"<code>\1</code>", str(escape(text))))


TEMPLATES.filters |= {"points": _points, "quoted": _quoted}
