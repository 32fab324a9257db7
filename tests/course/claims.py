"""What a chapter claims, and what it checks: read from its notebook.

A **claim** is

- a labelled ``{prf:theorem}``, ``{prf:lemma}``, ``{prf:proposition}`` or ``{prf:corollary}``,
- a labelled ``{prf:observation}``: what recorded numbers say, or
- a labelled ``{math}`` block whose label the notebook's metadata lists under ``"claims"``.

Definitions and the other equations are not claims. A **check** is a code cell whose metadata
lists, under ``"checks"``, the claims that it proves. :func:`problems` says everything that keeps
claims and checks from being equal, each time naming the chapter and the label.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from tools import myst

BOOK = Path(__file__).resolve().parents[2] / "book"
PROVED = ("theorem", "lemma", "proposition", "corollary")
CLAIMING = {f"prf:{kind}" for kind in (*PROVED, "observation")}


class Label(NamedTuple):
    """A name that other text can refer to: what carries it (a directive's name), and where."""

    name: str
    kind: str
    cell: str


@dataclass(frozen=True)
class Chapter:
    """One notebook of the book."""

    slug: str
    notebook: NotebookNode

    @cached_property
    def text(self) -> str:
        """All its Markdown."""
        cells = [cell for cell in self.notebook.cells if cell.cell_type == "markdown"]
        return "\n\n".join(cell.source for cell in cells)

    @cached_property
    def labels(self) -> list[Label]:
        """Everything that has a label: equations, theorems, figures, targets."""
        labels = []
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown":
                labels += [Label(*each, cell.id) for each in myst.labels(cell.source)]
            figure = cell.metadata.get("mystnb", {}).get("figure", {})
            if figure.get("name"):
                labels.append(Label(figure["name"], "figure", cell.id))
        return labels

    @cached_property
    def listed(self) -> list[str]:
        """The equations that the metadata declares to be claims."""
        return list(self.notebook.metadata.get("claims", []))

    @cached_property
    def claims(self) -> frozenset[str]:
        proofs = {label.name for label in self.labels if label.kind in CLAIMING}
        return frozenset(proofs | set(self.listed))

    @cached_property
    def checks(self) -> dict[str, list[str]]:
        """For each label that is checked, the ids of the cells that check it."""
        cells_by_label: dict[str, list[str]] = {}
        for cell in self.notebook.cells:
            for label in cell.metadata.get("checks", []):
                cells_by_label.setdefault(label, []).append(cell.id)
        return cells_by_label


def read(path: Path) -> Chapter:
    """The notebook as it is stored: nbformat's own reader would repair it first."""
    return Chapter(path.stem, nbformat.v4.reads(path.read_text("utf-8")))


def chapters(book: Path = BOOK) -> list[Chapter]:
    """Every notebook of the book, in order."""
    return [read(path) for path in sorted(book.glob("*.ipynb"))]


def page_labels(book: Path = BOOK) -> dict[str, list[Label]]:
    """The labels that the Markdown pages define, by page."""
    pages = sorted(book.glob("*.md"))
    return {
        page.stem: [Label(*each, "page") for each in myst.labels(page.read_text("utf-8"))]
        for page in pages
    }


def problems(
    chapters: Iterable[Chapter],
    required: Mapping[str, frozenset[str]],
    pages: Mapping[str, list[Label]] | None = None,
) -> list[str]:
    """All that is wrong with the claims of these chapters, one sentence each.

    Args:
        chapters: the notebooks.
        required: by slug, the claims with a perturbation: the chapter has to make just these.
        pages: by name, the labels of further pages.
    """
    chapters = list(chapters)
    messages = [problem for chapter in chapters for problem in chapter_problems(chapter)]

    for chapter in chapters:
        wanted = required.get(chapter.slug, frozenset())
        for name in sorted(wanted - chapter.claims):
            messages.append(
                f"{chapter.slug}: the claim {name} has disappeared, its perturbation has not"
            )
        for name in sorted(chapter.claims - wanted):
            messages.append(f"{chapter.slug}: the claim {name} has no perturbation")
    for slug in sorted(set(required) - {chapter.slug for chapter in chapters}):
        messages.append(f"{slug}: the chapter has disappeared, its perturbations have not")

    everywhere = [(chapter.slug, label) for chapter in chapters for label in chapter.labels]
    everywhere += [(page, label) for page, labels in (pages or {}).items() for label in labels]
    count = Counter(label.name for _, label in everywhere)
    for name in sorted(name for name, times in count.items() if times > 1):
        places = [f"{slug} (cell {label.cell})" for slug, label in everywhere if label.name == name]
        messages.append(
            f"{places[0].split()[0]}: the label {name} is given twice: {', '.join(places)}"
        )
    return messages


def chapter_problems(chapter: Chapter) -> list[str]:
    """What is wrong inside one chapter."""
    slug, messages = chapter.slug, []
    equations = {label.name for label in chapter.labels if label.kind == "math"}
    for name in chapter.listed:
        if name not in equations:
            messages.append(f"{slug}: the metadata claims {name}, which labels no equation")
    for name, times in Counter(chapter.listed).items():
        if times > 1:
            messages.append(f"{slug}: the metadata claims {name} {times} times")
    for directive in myst.directives(chapter.text):
        if directive.name in CLAIMING and not directive.options.get("label"):
            messages.append(
                f"{slug}: a {directive.name} has no label, so that nothing can check it"
            )
    for name in sorted(chapter.claims - set(chapter.checks)):
        messages.append(f"{slug}: the claim {name} has no check")
    for name, cells in sorted(chapter.checks.items()):
        if name not in chapter.claims:
            messages.append(f"{slug}: cell {', '.join(cells)} checks {name}, which is no claim")
        if len(cells) > 1:
            messages.append(
                f"{slug}: the claim {name} is checked twice, by cells {', '.join(cells)}"
            )
    return messages
