"""A learner's notebook: read without trust, rebuilt from the instructor's, and planned.

Whatever runs an exercise (the grader, `make check`, the answer banks) takes these three steps, so
there is one rule for which cells run and which text they have:

1. :func:`parse` reads the bytes of a file and keeps each cell's kind, text and two names;
2. :func:`rebuild` puts these cells into a clean notebook with the instructor's metadata;
3. :func:`plan` says which of its cells are run, and in which role.

A cell is known by its nbgrader name, or else by its cell id. A known cell gets the instructor's
metadata and kind, and if it is locked the instructor's text: neither points nor tags
(``skip-execution`` would make a test pass unrun) nor changed tests come from outside. Every other
cell is an ordinary cell.

- A cell that appears more than once counts where it stands last; earlier copies run as ordinary
  cells.
- A locked cell that was deleted is put back after the cell it follows in the instructor's notebook;
  a test that follows none, at the end. A deleted answer is not put back: its stub would replace an
  answer written elsewhere.
- Unmarked cells of the instructor's that the learner left as they were, such as pictures, are not
  run: no test depends on them, and drawing takes longer than everything else.
"""

import ast
import json
import re
from dataclasses import dataclass, field

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from nbgrader.utils import is_grade, is_locked, is_solution, is_task

MAX_CELLS = 2000
KINDS = ("code", "markdown", "raw")
UNWRITABLE = re.compile("[\ud800-\udfff]")  # halves of characters


class Reject(Exception):
    """This file cannot be used; the message tells its author why, and what to do."""


# --- 1. read


@dataclass(frozen=True)
class Cell:
    """What is kept of a learner's cell: no outputs, no metadata but two names.

    Attributes:
        kind: ``code``, ``markdown`` or ``raw``.
        source: the text.
        grade_id: nbgrader's name of the cell, if it has one.
        cell_id: the notebook format's own name of the cell, if it has one.
        pictures: what was pasted into its text (``attachments``): by name, then by kind, base64.
    """

    kind: str
    source: str
    grade_id: str | None = None
    cell_id: str | None = None
    pictures: dict[str, dict[str, str]] = field(default_factory=dict)


def parse(data: bytes, remedy: str = "") -> list[Cell]:
    """The cells of a notebook.

    Args:
        data: the bytes of an ``.ipynb`` file, format 4.
        remedy: a sentence for the author of a file that is damaged as a whole.

    Raises:
        Reject: if they are not one, with the reason.
    """
    try:
        cells = _cells(data)
    except Reject as problem:
        raise Reject(f"{problem} {remedy}".rstrip()) from None
    if len(cells) > MAX_CELLS:
        raise Reject(f"The notebook has {len(cells)} cells, and at most {MAX_CELLS} are accepted.")
    return [_cell(number, cell) for number, cell in enumerate(cells, 1)]


def _cells(data: bytes) -> list:
    """The list of cells of a notebook file, its entries not looked at."""
    if not data.strip():
        raise Reject("The file is empty.")
    try:
        # utf-8-sig: some Windows editors put a byte order mark in front.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Reject(f"The file is not UTF-8 text (byte {error.start}).") from None
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise Reject("The file is nested too deeply to be a notebook.") from None
    except ValueError as error:
        if not text.lstrip().startswith(("{", "<<<<<<<")):  # the second: git's mark of a conflict
            raise Reject("The file is not a notebook, a file whose name ends in .ipynb.") from None
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise Reject(
            f"The file is not a complete notebook: its JSON is broken{where}. Perhaps it was cut "
            "off, edited as text, or merged by git."
        ) from None
    if not isinstance(notebook, dict) or "nbformat" not in notebook:
        raise Reject("The file is JSON, but not a notebook.")
    if notebook["nbformat"] != 4:
        version = notebook["nbformat"]
        shown = version if isinstance(version, int) and abs(version) < 1000 else "unknown"
        raise Reject(f"The notebook has format {shown}, and format 4 is needed.")
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise Reject("The notebook has no list of cells.")
    return cells


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
        {} if cell["cell_type"] == "code" else _pictures(cell.get("attachments")),
    )


def _pictures(attachments: object) -> dict[str, dict[str, str]]:
    """The pictures among a cell's attachments; anything else is left out."""
    pictures = {}
    for name, bundle in attachments.items() if isinstance(attachments, dict) else ():
        data = bundle.items() if isinstance(bundle, dict) else ()
        images = {
            kind: text
            for kind, text in data
            if isinstance(text, str) and re.fullmatch(r"image/[a-z+]{1,20}", kind)
        }
        if images and not UNWRITABLE.search(f"{name}{''.join(images.values())}"):
            pictures[name] = images
    return pictures


# --- 2. rebuild


def name_of(cell: NotebookNode) -> str | None:
    """nbgrader's name of a cell in a notebook of ours; None for an ordinary cell."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def marked(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that nbgrader knows, by name, in order."""
    return {
        name_of(cell): cell
        for cell in notebook.cells
        if is_grade(cell) or is_solution(cell) or is_locked(cell) or is_task(cell)
    }


def match(cells: list[Cell], source: NotebookNode) -> list[str | None]:
    """For each of a learner's cells, which of the instructor's it is; None for an ordinary cell."""
    known = marked(source)
    by_id = {cell.id: name for name, cell in known.items() if "id" in cell}
    return [
        by_id.get(cell.cell_id)
        if cell.grade_id is None
        else (cell.grade_id if cell.grade_id in known else None)
        for cell in cells
    ]


def is_foreign(cells: list[Cell], source: NotebookNode) -> bool:
    """Whether none of a learner's cells is one of the instructor's cells for answers."""
    known = marked(source)
    return not any(name and is_solution(known[name]) for name in match(cells, source))


def _new(kind: str, source: str, name: str) -> NotebookNode:
    """A cell. nbformat's own functions also validate each one, and the whole is validated once."""
    made = NotebookNode(id=name, cell_type=kind, metadata=NotebookNode(), source=source)
    if kind == "code":
        made.update(execution_count=None, outputs=[])
    return made


def rebuild(cells: list[Cell], source: NotebookNode) -> NotebookNode:
    """A clean notebook from a learner's cells and the instructor's notebook.

    Args:
        cells: the learner's cells.
        source: the instructor's notebook, or its release.

    Returns:
        A valid notebook of format 4.5 with unique cell ids.
    """
    known = marked(source)
    names = list(known)
    plain = {(cell.cell_type, cell.source.strip()) for cell in source.cells if not name_of(cell)}
    matched = match(cells, source)
    last = {name: place for place, name in enumerate(matched) if name is not None}

    def ours(name: str, text: str) -> NotebookNode:
        cell = known[name]
        text = cell.source if is_locked(cell) else text
        made = _new(cell.cell_type, text, f"known-{names.index(name)}")
        made.metadata["nbgrader"] = dict(cell.metadata.nbgrader)
        if is_locked(cell) and "attachments" in cell:
            made["attachments"] = cell.attachments
        return made

    result = []
    for place, (cell, name) in enumerate(zip(cells, matched, strict=True)):
        if name is not None and last[name] == place:
            made = ours(name, cell.source)
        else:
            made = _new(cell.kind, cell.source, f"extra-{place}")
            if (cell.kind, cell.source.strip()) in plain:
                made.metadata["given"] = True  # as the instructor wrote it
        if cell.pictures and made.cell_type != "code" and not is_locked(made):
            made["attachments"] = cell.pictures
        result.append(made)
    for position, (name, cell) in enumerate(known.items()):
        if is_locked(cell) and name not in last:
            before = set(names[:position])
            follows = [place for place, other in enumerate(result) if name_of(other) in before]
            # With nothing to follow, a test goes to the end: it may still find its answer.
            otherwise = len(result) if is_grade(cell) else 0
            result.insert(follows[-1] + 1 if follows else otherwise, ours(name, cell.source))

    notebook = new_notebook()
    notebook.cells = result
    for key in ("kernelspec", "language_info"):
        if key in source.metadata:
            notebook.metadata[key] = source.metadata[key]
    nbformat.validate(notebook)
    return notebook


# --- 3. plan


@dataclass(frozen=True)
class Step:
    """A cell that is run.

    Attributes:
        place: the cell's index in the notebook.
        name: nbgrader's name of the cell; None for an ordinary cell.
        source: the code.
        role: ``answer`` (the learner's), ``test``, or ``given`` (the instructor's, not graded).
    """

    place: int
    name: str | None
    source: str
    role: str


def plan(notebook: NotebookNode, source: NotebookNode) -> list[Step]:
    """The cells that are run, in order.

    Args:
        notebook: what :func:`rebuild` returned, or a notebook of ours.
        source: the instructor's notebook, or its release. If a part of it is graded by hand,
            somebody looks at the whole notebook, so pictures are run too.
    """
    pictures = set()
    if not graded_by_hand(source):
        pictures = {cell.source for cell in source.cells if not cell.metadata.get("nbgrader")}
    return [
        Step(place, name_of(cell), cell.source, _role(cell))
        for place, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
        and (cell.metadata.get("nbgrader") or cell.source not in pictures)
    ]


def _role(cell: NotebookNode) -> str:
    if is_grade(cell) and not is_solution(cell):
        return "test"
    return "given" if is_locked(cell) else "answer"


def graded_by_hand(source: NotebookNode) -> bool:
    """Whether somebody grades a part of this assignment by hand."""
    return any(is_task(cell) or (is_grade(cell) and is_solution(cell)) for cell in source.cells)


def answer_names(source: NotebookNode) -> list[str]:
    """The names that the instructor's own answers define: what tests may use of a learner's."""
    answers = [cell for cell in source.cells if cell.cell_type == "code" and is_solution(cell)]
    return list(dict.fromkeys(name for cell in answers for name in defined_names(cell.source)))


def defined_names(source: str) -> list[str]:
    """The names that a cell defines at its top level; none if it is not Python."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return []
    names: list[str] = []
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target)]
            names += [part.id for part in parts if isinstance(part, ast.Name)]
    return list(dict.fromkeys(names))
