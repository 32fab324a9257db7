"""The formgrader's pages: a submission is sanitized, and a content security policy backs that up.

nbgrader's formgrader shows a submission's Markdown and outputs as they are, as a page of Jupyter's
own site, where a script could do everything that the instructor can. Here it shows what
:mod:`grading.rendering` makes of them. In case something gets through all the same, the browser is
told to run no script but the formgrader's own, which carry a random number drawn for each page, and
to request nothing from another site.
"""

import base64
import hashlib
import re
import secrets
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, FileSystemLoader
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.ext import Extension
from markupsafe import Markup
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbgrader.server_extensions.formgrader import base, handlers
from tornado.web import StaticFileHandler

from grading import rendering

FOLDER = Path(__file__).resolve().parents[1] / "book" / "_static" / "mathjax"
# Of TeX, what writes formulas: nothing that loads, links or styles.
TYPESET = """<script>
MathJax = {
  tex: {
    inlineMath: [["$", "$"], ["\\\\(", "\\\\)"]],
    packages: {"[-]": ["html", "require", "autoload", "bbox", "unicode"]},
    macros: {mmlToken: "\\\\text{mmlToken}"}
  },
  options: {enableMenu: false}
};
</script>
<script src="{{ resources.base_url }}/formgrader/mathjax/tex-chtml-full.js" async></script>
"""
MATHJAX = re.escape("{{ mathjax() }}")  # in nbgrader's templates; it loads from another site
# A cell's output stays inside its own box, even if it moves itself (a formula can).
CONTAINED = "<style>.rendered_html, .output_subarea { contain: paint; }</style>"
# Template filters whose work `rendering.view` has done already.
DONE = ("markdown2html", "highlight_code", "ansi2html", "clean_html", "strip_files_prefix")
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}' {handlers}; style-src 'self' 'unsafe-inline'; "
    "img-src data:; font-src 'self' data:; connect-src 'self'; form-action 'none'; "
    "base-uri 'none'"
)


class Nonce:
    """The number that the scripts of the page being made carry."""

    current = ""

    @classmethod
    def get(cls) -> str:
        return cls.current


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

    What a template shows is escaped, unless :mod:`grading.rendering` made it. HTMLExporter would
    parse the finished page and write it again, which takes longer than everything else and has no
    effect on these pages.
    """

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
        """Only the styles: some preprocessors that nbconvert adds are slow on unusual text."""
        self.register_preprocessor(CSSHTMLHeaderPreprocessor(parent=self), enabled=True)

    def _preprocess(self, nb: NotebookNode, resources: dict):
        nb, resources = super()._preprocess(nb, resources)
        styles = resources.get("inlining", {}).get("css", [])
        resources["inlining"] = {"css": [Markup(style) for style in styles]}
        return rendering.view(nb), resources

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kw):
        return super(HTMLExporter, self).from_notebook_node(nb, self._init_resources(resources))


class GradersPage(Page):
    """A submission as the formgrader shows it."""

    edits: ClassVar[dict[str, str]] = {
        MATHJAX: (CONTAINED + (TYPESET if FOLDER.is_dir() else "")).replace("\\", r"\\"),
        "<script": '<script nonce="{{ nonce() }}"',
        # A text in a script is escaped as scripts want it.
        r'= "\{\{ ([\w.]+) \}\}([\w/]*)";': r'= {{ (\1 ~ "\2") | tojson }};',
    }
    compiled: ClassVar[Compiled] = Compiled()

    def _create_environment(self):
        environment = super()._create_environment()
        environment.globals["nonce"] = Nonce.get
        return environment


def install() -> None:
    """Make the formgrader use these pages; calling this twice is harmless."""
    if hasattr(base.BaseHandler, "nonce"):
        return
    inherited = base.BaseHandler.content_security_policy
    templates = Environment(
        loader=FileSystemLoader([handlers.template_path]), extensions=[Edits], autoescape=True
    )
    templates.extend(edits=GradersPage.edits)
    templates.globals["nonce"] = Nonce.get
    allowed = " ".join(["'unsafe-hashes'", *_hashes()])

    def nonce(self) -> str:
        if not hasattr(self, "_nonce"):
            self._nonce = secrets.token_urlsafe(16)
        return self._nonce

    def policy(self) -> str:
        return f"{inherited.fget(self)}; {POLICY.format(nonce=self.nonce, handlers=allowed)}"

    def exporter(self) -> GradersPage:
        Nonce.current = self.nonce
        if not isinstance(self.settings["nbgrader_exporter"], GradersPage):
            config = self.settings["nbgrader_exporter"].config
            self.settings["nbgrader_exporter"] = GradersPage(config=config)
        return self.settings["nbgrader_exporter"]

    def render(self, name: str, **values) -> str:
        Nonce.current = self.nonce
        return templates.get_template(name).render(**values)

    base.BaseHandler.nonce = property(nonce)
    base.BaseHandler.content_security_policy = property(policy)
    base.BaseHandler.exporter = property(exporter)
    base.BaseHandler.render = render
    # A file beside a graded copy is never shown as a page of this site.
    handlers.SubmissionFilesHandler.content_security_policy = property(
        lambda self: f"{inherited.fget(self)}; default-src 'none'; sandbox"
    )
    place = (r"/formgrader/mathjax/(.*)", StaticFileHandler, {"path": str(FOLDER)})
    handlers.default_handlers.append(place)


def _hashes() -> list[str]:
    """The templates' few `onclick` scripts, as hashes that the policy allows."""
    scripts = set()
    for path in sorted(Path(handlers.template_path).rglob("*.*")):
        scripts |= set(re.findall(r'\bon[a-z]+="([^"]*)"', path.read_text(), re.IGNORECASE))
    digests = [hashlib.sha256(script.encode()).digest() for script in sorted(scripts)]
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
