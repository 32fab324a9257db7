"""Throw the learner's metadata away, and rebuild it from the instructor's notebook.

A cell of a submission is known by its nbgrader name, or else by its cell id. A known cell gets the
instructor's metadata and kind, so that neither points nor tags (``skip-execution`` would make a
test pass unrun) nor an old schema come from outside; every other cell is an ordinary cell. nbgrader
then puts the source of the locked cells back from its gradebook. Rebuilding what was rebuilt
changes nothing, so the plug-in :class:`RebuildCells` may follow :func:`rebuild`.

- A cell that appears more than once counts where it stands last; the earlier copies run as ordinary
  cells.
- A locked cell that was deleted is put back, behind the cell it follows in the instructor's
  notebook; a test that follows none, at the end. A deleted answer is not: its stub would replace an
  answer written elsewhere.
"""

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_locked, is_solution, is_task

from grading.intake import Cell

NEW = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


@dataclass(frozen=True)
class Ours:
    """A cell of the instructor's notebook that nbgrader knows."""

    grade_id: str
    cell: NotebookNode
    locked: bool


def ours(source: NotebookNode) -> list[Ours]:
    """The cells that nbgrader knows, in order."""
    return [
        Ours(cell.metadata.nbgrader.grade_id, cell, is_locked(cell))
        for cell in source.cells
        if is_grade(cell) or is_solution(cell) or is_locked(cell) or is_task(cell)
    ]


def rebuild(cells: list[Cell], source: NotebookNode) -> NotebookNode:
    """A clean notebook from a learner's cells and the instructor's notebook.

    Args:
        cells: the learner's cells.
        source: the instructor's notebook.

    Returns:
        A valid notebook of format 4.5 with unique cell ids.
    """
    known = ours(source)
    by_name = {item.grade_id: item for item in known}
    by_id = {item.cell.id: item for item in known if "id" in item.cell}
    matched = [
        by_name.get(cell.grade_id) or (by_id.get(cell.cell_id) if cell.grade_id is None else None)
        for cell in cells
    ]
    last = {item.grade_id: place for place, item in enumerate(matched) if item}

    result = []
    for place, (cell, item) in enumerate(zip(cells, matched, strict=True)):
        if item and last[item.grade_id] == place:
            result.append(_known(item, known.index(item), cell.source))
        else:
            result.append(NEW[cell.kind](cell.source, id=f"extra-{place}"))
    for position, item in enumerate(known):
        if item.locked and item.grade_id not in last:
            before = {other.grade_id for other in known[:position]}
            names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in result]
            follows = [place for place, name in enumerate(names) if name in before]
            cell = _known(item, position, item.cell.source)
            # With nothing to follow, a test goes behind everything: it may still find its answer.
            otherwise = len(result) if is_grade(item.cell) else 0
            result.insert(follows[-1] + 1 if follows else otherwise, cell)

    notebook = new_notebook(cells=result)
    for key in ("kernelspec", "language_info"):
        if key in source.metadata:
            notebook.metadata[key] = source.metadata[key]
    nbformat.validate(notebook)
    return notebook


def _known(item: Ours, position: int, source: str) -> NotebookNode:
    cell = NEW[item.cell.cell_type](source, id=f"known-{position}")
    cell.metadata["nbgrader"] = dict(item.cell.metadata.nbgrader)
    return cell


def put_back(notebook: NotebookNode, source: NotebookNode) -> None:
    """Give locked cells the instructor's text, as nbgrader does from its gradebook."""
    locked = {item.grade_id: item.cell.source for item in ours(source) if item.locked}
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = locked.get(name, cell.source)


class RebuildCells(NbGraderPreprocessor):
    """The same as a plug-in of nbgrader, so that its own commands and the formgrader do it too."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        assignment = resources["nbgrader"]["assignment"]
        directory = self.parent.parent.coursedir  # of the exporter's converter
        folder = Path(directory.format_path(directory.source_directory, ".", assignment))
        name = f"{resources['nbgrader']['notebook']}.ipynb"
        source = nbformat.read(folder / name, as_version=4)
        cells = [
            Cell(
                cell.cell_type,
                cell.source,
                cell.metadata.get("nbgrader", {}).get("grade_id"),
                cell.get("id"),
            )
            for cell in nb.cells
        ]
        return rebuild(cells, source), resources
