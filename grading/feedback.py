"""The page that a learner gets back: their work, the scores, what the tests said.

It holds neither the source of hidden tests nor their tracebacks, runs no script that came with the
submission, and asks nobody else for anything. The classes are also named in ``nbgrader_config.py``,
so that `nbgrader generate_feedback`, after scores were given by hand, makes the same page.
"""

import re
from pathlib import Path
from typing import ClassVar

from jinja2.bccache import Bucket, BytecodeCache
from jinja2.ext import Extension
from markupsafe import Markup
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import strip_ansi
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader import server_extensions
from nbgrader.preprocessors import ClearHiddenTests
from nbgrader.utils import is_grade, is_locked, is_solution, is_task
from traitlets.config import Config

from grading import rendering

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
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'"
MATHJAX = re.escape("{{ mathjax() }}")  # in nbgrader's templates; it loads from another site
HEAD = f'<head>\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
# What a cell shows is drawn inside its own box, whatever moves it (a formula can).
CONTAINED = "<style>.rendered_html, .output_subarea { contain: paint; }</style>"
# A template's filters that find their work done by `rendering.view`.
DONE = ("markdown2html", "highlight_code", "ansi2html", "clean_html", "strip_files_prefix")


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


class Compiled(BytecodeCache):
    """Templates, compiled once in this process and not again for each page."""

    def __init__(self):
        self.known: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.known:
            bucket.bytecode_from_string(self.known[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.known[bucket.key] = bucket.bytecode_to_string()


class Edits(Extension):
    """What `environment.edits` changes in the text of templates: patterns and replacements."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        for text, other in self.environment.edits.items():
            source = re.sub(text, other, source)
        return source


class Page(HTMLExporter):
    """A notebook in one of nbgrader's templates: of the submission only what was cleaned.

    What a template shows is escaped, unless :mod:`grading.rendering` made it. HTMLExporter reads
    its page once more as a tree and writes it anew, which takes longer than all the rest; what it
    does there does not matter to these pages.
    """

    server = ""  # of grading.rendering; empty for this process's own
    edits: ClassVar[dict[str, str]]
    compiled: ClassVar[Compiled]

    def _create_environment(self):
        environment = super()._create_environment()
        environment.autoescape = True
        environment.extend(edits=self.edits, bytecode_cache=self.compiled)
        environment.add_extension(Edits)
        return environment

    def default_filters(self):
        yield from super().default_filters()
        yield from ((name, lambda text, **_: text) for name in DONE)

    def _init_preprocessors(self):
        """Styles alone: some that nbconvert adds itself take a long time over odd text."""
        self.register_preprocessor(CSSHTMLHeaderPreprocessor(parent=self), enabled=True)

    def _preprocess(self, nb: NotebookNode, resources: dict):
        nb, resources = super()._preprocess(nb, resources)
        styles = resources.get("inlining", {}).get("css", [])
        resources["inlining"] = {"css": [Markup(style) for style in styles]}
        return rendering.view(nb, self.server), resources

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kw):
        return super(HTMLExporter, self).from_notebook_node(nb, self._init_resources(resources))


class FeedbackExporter(Page):
    """nbgrader's page without scripts: its only one loads MathJax from another site.

    In the list of scores each cell has its own name, where nbgrader calls all of them "Test cell".
    """

    edits: ClassVar[dict[str, str]] = {
        "<head>": HEAD,
        MATHJAX: CONTAINED,
        ">Test cell<": ">{{ cell.metadata.nbgrader.grade_id }}<",
    }
    compiled: ClassVar[Compiled] = Compiled()


def page(
    notebook: NotebookNode,
    assignment: str,
    *,
    points: dict[str, float],
    max_score: float,
    penalty: float,
    comments: dict[str, str],
    config: Config,
    server: str = "",
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
        server: the address of a fork server for :mod:`grading.rendering`.
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
    exporter.server = server
    exporter.register_preprocessor(HideTests(config=settings), enabled=True)
    html, _ = exporter.from_notebook_node(notebook, {"nbgrader": header, "unique_key": assignment})
    return html


def refusal(reason: str) -> NotebookNode:
    """What stands in place of a submission that gets no points: a notebook that says why."""
    # The reason may quote a file's name. As numbers, characters are neither Markdown nor HTML.
    plain = "".join(c if c.isalnum() or c in " .,:" else f"&#{ord(c)};" for c in reason)
    text = f"**No points: this submission could not be graded.**\n\n{plain}"
    return new_notebook(cells=[new_markdown_cell(text, id="reason")])
