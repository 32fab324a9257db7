"""The page that a learner gets back: their work, the scores, what the tests said.

It holds neither the source of hidden tests nor their tracebacks, runs no script that came with the
submission, and asks nobody else for anything.
"""

import re

from nbconvert.exporters import HTMLExporter
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.preprocessors import ClearHiddenTests
from nbgrader.utils import is_grade, is_locked

HIDDEN = "# (hidden tests ran here)"
SILENT_ERROR = {
    "AssertionError": "a test failed",
    "NotImplementedError": "this part is not written yet",
}
FRAME = re.compile(r"^Cell In\[(\d+)\], line")
# The reader's browser runs nothing and asks nobody: neither for us nor for what was handed in.
POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
)
SCRIPT = re.compile(r"<script\b[^>]*>.*?</script>", re.DOTALL | re.IGNORECASE)


class HideTests(ClearHiddenTests):
    """Take hidden tests out of the feedback, and keep what they say.

    Of a graded cell's traceback stay the message and the frames of the learner's own cells. A frame
    of a test cell shows the lines around it, so it goes.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        self.open_cells = {
            cell.execution_count
            for cell in nb.cells
            if cell.cell_type == "code" and not is_locked(cell)
        }
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int):
        if not is_grade(cell):
            return cell, resources
        if self._remove_hidden_test_region(cell):
            cell.source = f"{cell.source.rstrip()}\n{HIDDEN}"
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                frames = [frame for frame in output.traceback if self._own(frame)]
                said = output.evalue or SILENT_ERROR.get(output.ename, "no message")
                output.traceback = [*frames, f"\x1b[0;31m{output.ename}\x1b[0m: {said}"]
        return cell, resources

    def _own(self, frame: str) -> bool:
        found = FRAME.match(strip_ansi(frame))
        return found is not None and int(found.group(1)) in self.open_cells


class FeedbackExporter(HTMLExporter):
    """nbgrader's page without scripts: its only one loads MathJax from another site."""

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kw):
        page, resources = super().from_notebook_node(nb, resources, **kw)
        return SCRIPT.sub("", page).replace("<head>", f"<head>\n{POLICY}", 1), resources


def refusal(reason: str) -> NotebookNode:
    """What stands in place of a submission that gets no points: a notebook that says why."""
    # The reason may quote a file's name. As numbers, characters are neither Markdown nor HTML.
    plain = "".join(c if c.isalnum() or c in " .,:" else f"&#{ord(c)};" for c in reason)
    text = f"**No points: this submission could not be graded.**\n\n{plain}"
    return new_notebook(cells=[new_markdown_cell(text, id="reason")])
