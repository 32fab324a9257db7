"""What a page folds: the code of checks, and long proofs.

A cell that checks a claim (``checks`` in its metadata) prints a last line ``Checked: ...``, which
says what was checked and the number that came out. This line is what the page shows; a click opens
the code and everything else that the cell printed or drew. In JupyterLab nothing is folded.

A ``prf:proof`` of class ``dropdown`` is folded too. (sphinx-togglebutton cannot do it: it looks for
a title, which a proof has not, and its script stops there.)
"""

import re
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

LINE = re.compile(r"(?P<before>(?:.*\n)?)Checked: (?P<what>[^\n]+)\n*", re.DOTALL)


class Fold(nodes.Element):
    """Content behind a line: ``line`` is its HTML, and ``kind`` the class of the fold."""


def check_line(what: str) -> str:
    """What was checked, as HTML; what is between backticks is code."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(what, quote=False))
    # A line may break after a hyphen, but not inside a number.
    text = re.sub(r"\d[\d.]*e-\d+", r'<span class="whole">\g<0></span>', text)
    return f'<span aria-hidden="true">✓</span> <strong>Checked:</strong> {text}'


class FoldChecks(SphinxPostTransform):
    """Fold each cell that printed its line."""

    default_priority = 190  # before MyST-NB folds what is tagged
    formats = ("html",)

    def run(self, **options) -> None:
        for cell in list(self.document.findall(nodes.container)):
            if not cell.get("cell_metadata", {}).get("checks"):
                continue
            for printed in list(cell.findall(nodes.literal_block)):
                line = LINE.fullmatch(printed.astext())
                if line and "output" in printed["classes"]:
                    self.fold(cell, printed, line)

    @staticmethod
    def fold(cell: nodes.container, printed: nodes.literal_block, line: re.Match) -> None:
        """Put the cell's content behind its line, without this line."""
        if before := line["before"].rstrip("\n"):
            printed.rawsource = before
            printed.children = [nodes.Text(before)]
        else:
            printed.parent.remove(printed)
        parts = [
            part
            for part in cell.children
            if part.children or part.get("nb_element") != "cell_code_output"
        ]
        cell.children = []
        cell += Fold("", *parts, kind="check", line=check_line(line["what"]))


class FoldProofs(SphinxPostTransform):
    """Fold each proof of class ``dropdown``."""

    default_priority = 190
    formats = ("html",)

    def run(self, **options) -> None:
        for proof in list(self.document.findall(nodes.admonition)):
            if {"proof", "dropdown"} <= set(proof["classes"]):
                proof["classes"].remove("dropdown")
                fold = Fold("", kind="proof-fold", line="Show the proof")
                proof.replace_self(fold)
                fold += proof


def visit_fold(translator, node: Fold) -> None:
    """Open the fold."""
    translator.body.append(f'<details class="{node["kind"]}"><summary>{node["line"]}</summary>\n')


def depart_fold(translator, node: Fold) -> None:
    """Close the fold."""
    translator.body.append("</details>\n")


def setup(app: Sphinx) -> dict:
    app.add_node(Fold, html=(visit_fold, depart_fold))
    app.add_post_transform(FoldChecks)
    app.add_post_transform(FoldProofs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
