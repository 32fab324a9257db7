"""The page that a learner gets back: their work, the scores, what the tests said.

It holds neither the source of hidden tests nor their tracebacks, runs no script that came with the
submission, and asks nobody else for anything. The classes are also named in ``nbgrader_config.py``,
so that `nbgrader generate_feedback`, after scores were given by hand, makes the same page.
"""

import functools
import re
from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import Highlight2HTML, strip_ansi
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader import server_extensions
from nbgrader.preprocessors import ClearHiddenTests
from nbgrader.utils import is_grade, is_locked, is_solution, is_task
from traitlets.config import Config

# nbgrader's own template and style sheet
THEIRS = Path(server_extensions.__file__).parent / "formgrader"
TEMPLATES = THEIRS / "templates"
STYLES = THEIRS / "static/node_modules/bootstrap/dist/css"
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
PICTURE = re.compile(r"<img\b(?![^>]*\balt=)", re.IGNORECASE)
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
                message = output.evalue or SILENT_ERROR.get(output.ename, "no message")
                output.traceback = [*frames, f"\x1b[0;31m{output.ename}\x1b[0m: {message}"]
        return cell, resources

    def _own(self, frame: str) -> bool:
        found = FRAME.match(strip_ansi(frame))
        return found is not None and int(found.group(1)) in self.open_cells


class _Compiled(BytecodeCache):
    """nbgrader's templates, compiled once in this process and not again for each page."""

    def __init__(self):
        self.known: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.known:
            bucket.bytecode_from_string(self.known[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.known[bucket.key] = bucket.bytecode_to_string()


COMPILED = _Compiled()


@functools.lru_cache(128)  # most cells are the instructor's, the same on every page
def _highlighted(source: str, language: str) -> str:
    return Highlight2HTML(pygments_lexer=language)(source)


class FeedbackExporter(HTMLExporter):
    """nbgrader's page without scripts: its only one loads MathJax from another site.

    HTMLExporter reads its page once more as a tree and writes it anew, which takes longer than all
    the rest; of what it does there, only the pictures' alternative text matters to this page.
    """

    def _create_environment(self):
        environment = super()._create_environment()
        environment.bytecode_cache = COMPILED
        return environment

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kw):
        resources = self._init_resources(resources)
        found = nb.metadata.get("language_info", {})
        language = found.get("pygments_lexer", found.get("name")) or "ipython3"
        self.register_filter("highlight_code", lambda source, **_: _highlighted(source, language))
        self.register_filter(
            "filter_data_type",
            WidgetsDataTypeFilter(
                notebook_metadata=self._nb_metadata, parent=self, resources=resources
            ),
        )
        page, resources = super(HTMLExporter, self).from_notebook_node(nb, resources, **kw)
        page = SCRIPT.sub("", page).replace("<head>", f"<head>\n{POLICY}", 1)
        return PICTURE.sub('<img alt="a picture that this cell drew"', page), resources


def page(
    notebook: NotebookNode,
    assignment: str,
    *,
    points: dict[str, float],
    max_score: float,
    penalty: float,
    comments: dict[str, str],
    config: Config,
) -> str:
    """The page for a graded notebook, as HTML.

    Args:
        notebook: with outputs; it is changed.
        assignment: the title.
        points: what each graded cell counts.
        max_score: of the assignment.
        penalty: points that being late costs.
        comments: what is said of a cell.
        config: the course's configuration.
    """
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if is_solution(cell) or is_task(cell):
            marks["comment"] = comments.get(marks["grade_id"])
        if is_grade(cell) or is_task(cell):
            marks["score"] = points.get(marks["grade_id"], 0.0)
    header = {"notebook": assignment, "score": sum(points.values()) - penalty}
    header |= {"max_score": max_score, "late_penalty": penalty}
    settings = config.copy()
    settings.HTMLExporter.setdefault("template_name", "feedback")
    settings.HTMLExporter.setdefault("extra_template_basedirs", [str(TEMPLATES)])
    settings.HTMLExporter.extra_template_paths = [str(STYLES)]
    exporter = FeedbackExporter(config=settings)
    exporter._preprocessors = []
    for step in (HideTests, CSSHTMLHeaderPreprocessor):
        exporter.register_preprocessor(step(config=settings), enabled=True)
    html, _ = exporter.from_notebook_node(notebook, {"nbgrader": header, "unique_key": assignment})
    return html


def refusal(reason: str) -> NotebookNode:
    """What stands in place of a submission that gets no points: a notebook that says why."""
    # The reason may quote a file's name. As numbers, characters are neither Markdown nor HTML.
    plain = "".join(c if c.isalnum() or c in " .,:" else f"&#{ord(c)};" for c in reason)
    text = f"**No points: this submission could not be graded.**\n\n{plain}"
    return new_notebook(cells=[new_markdown_cell(text, id="reason")])
