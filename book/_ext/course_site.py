"""Changes to Sphinx and Jupyter Book that no setting offers.

- A page is read again when its notebook's outputs changed, even if its source
  did not.
- Link previews and a sitemap are made once the site's address is known
  (``html.baseurl``).
- sphinx-thebe, which loads code from a third party, is removed.
- Markup of other packages that screen readers cannot use is repaired.
- Binder and Colab buttons wait until ``repository.url`` is set.
- Where a page names the wheel of `lib` to install, a site with an address gives its address.
- The download menu offers the chapter's exercise and the wheel of `lib`, if they were built
  (``_build/take-away``), and the exercise's name in the text is a link to it.
- Code of a few characters in the text gets the class ``short``: no line breaks inside it.
- The start page at the root is a redirect that names its target.
"""

import hashlib
import re
from pathlib import Path

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from pybtex.plugin import find_plugin, register_plugin
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

SHORT = 24  # characters
START = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="canonical" href="{target}">
<link rel="icon" href="_static/logo.svg">
<meta http-equiv="refresh" content="0; url={target}">
</head>
<body>
<main><h1>{title}</h1><p><a href="{target}">Open the book</a></p></main>
</body>
</html>
"""


def without_repository(app: Sphinx, config: Config) -> None:
    """Turn the launch buttons off without a public repository: the theme would fail."""
    if not config.html_theme_options.get("repository_url"):
        config.html_theme_options["launch_buttons"] = {}


def digests(app: Sphinx, env: BuildEnvironment) -> dict[str, str]:
    """Hash the executed cells of every notebook, as the cache holds them."""
    default = Path(app.outdir).parent / ".jupyter_cache"
    cache = get_cache(app.config.nb_execution_cache_path or default)
    hashes = {}
    for docname in env.found_docs:
        path = Path(env.doc2path(docname))
        if path.suffix != ".ipynb":
            continue
        try:
            notebook = nbformat.read(path, as_version=4)
            record = cache.match_cache_notebook(notebook)
            executed = nbformat.writes(cache.get_cache_bundle(record.pk).nb)
        except KeyError:  # not executed yet: Sphinx will do it, and read it
            continue
        hashes[docname] = hashlib.sha256(executed.encode()).hexdigest()
    return hashes


def outdated(app, env, added, changed, removed) -> list[str]:
    """The pages whose outputs have changed since they were read."""
    before = getattr(env, "course_digests", {})
    env.course_digests = now = digests(app, env)
    return [name for name in now if before.get(name) != now[name]]


def without_thebe(app: Sphinx) -> None:
    """Remove sphinx-thebe, which Jupyter Book always loads.

    It would put scripts from a third party on every page.
    """
    for listeners in app.events.listeners.values():
        listeners[:] = [each for each in listeners if each.handler.__module__ != "sphinx_thebe"]
    app.registry.css_files[:] = [
        (name, attributes)
        for name, attributes in app.registry.css_files
        if name != "sphinx-thebe.css"
    ]


CAPTIONED = re.compile(
    r'(<figure\b[^>]* id="([^"]+)")(>(?:(?!</figure>).)*?<figcaption)>', re.DOTALL
)


def repair_markup(app, pagename, templatename, context, doctree) -> None:
    """Repair what axe-core and the HTML standard object to in the markup of other packages."""
    if "body" not in context:
        return
    for markup, better in (
        # docutils' role is deprecated in ARIA, and not allowed in a list
        (r'role="doc-biblioentry"', 'role="listitem"'),
        # MyST-NB's label hides the words on the control
        (r'<summary aria-label="Toggle hidden content">', "<summary>"),
        # sphinx-proof gives every proof, and every theorem's content, the same id
        (r'(class="(?:proof admonition|\w+-content)") id="proof(?:-content)?"', r"\1"),
        (r'(<div class="proof admonition">\s*<p>)Proof\.', r"\1<em>Proof.</em>"),
        # a figure is announced by its caption, which Chromium does not do unasked
        (CAPTIONED, r'\1 aria-labelledby="\2-caption"\3 id="\2-caption">'),
    ):
        context["body"] = re.sub(markup, better, context["body"])


def downloads_folder(app: Sphinx) -> Path:
    """The folder of downloads; `tools.book` fills it before the pages are built."""
    return Path(app.outdir).parent / "take-away"


def exercise(app: Sphinx, name: str) -> str | None:
    """The address of an exercise on the site, if there is one of that name."""
    path = f"exercises/{name}.ipynb"
    return f"_downloads/{path}" if (downloads_folder(app) / path).is_file() else None


def more_downloads(app, pagename, templatename, context, doctree) -> None:
    """Name each download by its contents, and add those that belong to the chapter."""
    buttons = context.get("header_buttons", ())
    groups = [each for each in buttons if each["label"] == "download-buttons"]
    if not groups:
        return
    buttons = groups[0]["buttons"]
    source = Path(app.env.doc2path(pagename))
    if source.suffix == ".ipynb":
        downloads = {"download-exercise-button": ("Exercise (.ipynb)", exercise(app, source.stem))}
        text = source.read_text(encoding="utf-8")
        for wheel in downloads_folder(app).glob("*.whl"):
            if wheel.name in text:  # the page's first note asks for it
                downloads["download-wheel-button"] = ("lib (.whl)", f"_downloads/{wheel.name}")
        words = {"download-source-button": "Notebook (.ipynb)", "download-pdf-button": "Print"}
        for button in buttons:
            button["text"] = words.get(button["label"], button["text"])
        buttons[1:1] = [
            {
                "type": "link",
                "url": context["pathto"](address, 1),
                "text": words,
                "tooltip": f"Download {words}",
                "icon": "fas fa-file",
                "label": label,
            }
            for label, (words, address) in downloads.items()
            if address
        ]


class LinkExercises(SphinxPostTransform):
    """Link an exercise's file where a page names it."""

    default_priority = 6
    builders = ("html",)

    def run(self, **options) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            match = re.fullmatch(r"exercises/([\w-]+)/\1\.ipynb", literal.astext())
            address = match and exercise(self.app, match[1])
            if address and not isinstance(literal.parent, nodes.reference):
                up = "../" * self.env.docname.count("/")
                link = nodes.reference("", "", refuri=up + address, internal=True)
                literal.replace_self(link)
                link += literal


class MarkShortCode(SphinxPostTransform):
    """Mark code in the text that fits on a phone's line, so that it is kept together."""

    default_priority = 7
    builders = ("html",)

    def run(self, **options) -> None:
        for literal in self.document.findall(nodes.literal):
            if len(literal.astext()) <= SHORT:
                literal["classes"].append("short")


class AddressWheel(SphinxPostTransform):
    """Add how to install `lib` where no file can be put beside the notebook, as on Colab."""

    default_priority = 6
    builders = ("html",)

    def run(self, **options) -> None:
        site = self.config.html_baseurl.rstrip("/")
        if not site:
            return
        for literal in list(self.document.findall(nodes.literal)):
            if match := re.fullmatch(r"python -m pip install (\S+\.whl)", literal.astext()):
                command = f"%pip install {site}/_downloads/{match[1]}"
                words = nodes.Text(". On Colab, run this in a new first cell instead: ")
                literal.parent += [words, nodes.literal("", command)]


class TakeAway(SphinxDirective):
    """The place where `tools.downloads` lists the downloads of the whole course."""

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", "<!-- take-away --><!-- /take-away -->", format="html")]


def look_up_once() -> None:
    """Cache the two plugins of pybtex, which every citation searches all installed packages for.

    The searches took a tenth of the time for building the pages.
    """
    for name in ("docutils", "plaintext"):
        backend = find_plugin("pybtex.backends", name)
        register_plugin("pybtex.backends", name, backend, force=True)


def write_start(app: Sphinx, error: Exception | None) -> None:
    """Replace the bare redirect that sphinx-external-toc writes."""
    root = app.config.root_doc
    if error is None and app.builder.name == "html" and root != "index":
        page = START.format(title=app.config.html_title, target=f"{root}.html")
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    if address := app.config.overrides.get("html_baseurl"):
        app.setup_extension("sphinxext.opengraph")
        app.config.overrides["ogp_site_url"] = address
        # cards would look for a font that is not here, and say so on stderr
        app.config.overrides["ogp_social_cards"] = {"enable": False}
        app.setup_extension("sphinx_sitemap")
        app.config.overrides["sitemap_url_scheme"] = "{link}"
    without_thebe(app)
    look_up_once()
    app.connect("config-inited", without_repository)
    app.connect("env-get-outdated", outdated)
    app.connect("html-page-context", repair_markup)
    app.connect("html-page-context", more_downloads, priority=600)  # after the theme's buttons
    app.add_directive("take-away", TakeAway)
    app.add_post_transform(LinkExercises)
    app.add_post_transform(AddressWheel)
    app.add_post_transform(MarkShortCode)
    app.connect("build-finished", write_start, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
