"""The language models that run on the pages: their scripts, and their weights as script files.

A page shows a model where its text has ``<div class="language-model" ...>``; what is inside is for
readers without a script, for JupyterLab and for the printed book. Such a page gets the scripts and
the style of ``book/_static/model``, and other pages do not.

The weights are those that chapter 07's record keeps, 16 bits each. From a folder, without a server,
a page may read nothing but scripts, so each model becomes one: ``_static/model/rope.js`` calls
``registerLanguageModel`` with the names, the shapes and the numbers in base64.
"""

import base64
import json
from pathlib import Path

from sphinx.application import Sphinx

MARK = 'class="language-model"'
SCHEMES = ("none", "sinusoidal", "learned", "rope", "alibi", "t5")
RECORD = "extrapolation"
# What the models know, in the order of its numbers, which begin at 1: 0 is every other character.
# The text that they were trained on decides it, and that text varies with the version of Python.
ASCII = "".join(chr(n) for n in range(32, 127) if chr(n) not in "$`")
SYMBOLS = "\n" + ASCII + "°ß–—\u2018\u2019“”…"
SCRIPTS = (  # in the order that they need
    *("model.js", "worker.js", "charts.js", "loading.js"),
    *("controls.js", "panels.js", "cache.js", "page.js"),
)


def weights_script(scheme: str) -> str:
    """The script that registers one model.

    Args:
        scheme: one of `SCHEMES`; the model of seed 0 is taken.

    Raises:
        ValueError: as :func:`lib.results.load_weights`.
    """
    from lib.results import load_weights  # a site without a model does not need lib

    arrays = load_weights(RECORD, scheme=scheme, seed=0)
    halves = b"".join(array.astype("<f2").tobytes() for array in arrays.values())
    stored = {
        "scheme": scheme,
        "symbols": ["<unknown>", *SYMBOLS],
        "shapes": [[name, list(array.shape)] for name, array in arrays.items()],
        "halves": base64.b64encode(halves).decode(),
    }
    return f"registerLanguageModel({json.dumps(stored, separators=(',', ':'))});\n"


def add_scripts(app: Sphinx, pagename, templatename, context, doctree) -> None:
    """Add scripts and style to a page that shows a model."""
    if MARK in context.get("body", ""):
        app.add_css_file("model/model.css")
        for name in SCRIPTS:
            app.add_js_file(f"model/{name}", loading_method="defer")


def write_weights(app: Sphinx, error: Exception | None) -> None:
    """Write the weights of all models, if the book has the record that keeps them."""
    record = Path(app.srcdir) / "benchmarks" / "results" / f"{RECORD}.json"
    if error is None and app.builder.name == "html" and record.is_file():
        folder = Path(app.outdir) / "_static" / "model"
        folder.mkdir(parents=True, exist_ok=True)
        for scheme in SCHEMES:
            (folder / f"{scheme}.js").write_text(weights_script(scheme), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_scripts)
    app.connect("build-finished", write_weights)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
