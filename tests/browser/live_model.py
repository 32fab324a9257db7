"""The language models on the pages, as several files of these tests look at them."""

import importlib.util
import json
import re
from functools import cache

from tools.book import ROOT

STATIC = ROOT / "book" / "_static" / "model"
PAGES = ("index", "01-attention", "05-rope", "06-alibi", "07-extrapolation", "10-kv-cache")
RUNNING = "document.querySelector('.model-about').textContent.includes('stays on this page')"


@cache
def extension():
    path = ROOT / "book" / "_ext" / "language_model.py"
    spec = importlib.util.spec_from_file_location("language_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCHEMES = extension().SCHEMES


# Whether what is shown belongs to a text as long as the one in the field, or says what failed.
ANSWERED = """() => {
    const model = document.querySelector('.language-model');
    const length = [...model.querySelector('textarea').value].length;
    const failed = model.querySelector('.model-problem')?.textContent;
    return !length || failed || +model.dataset.length === length;
}"""


def settle(page) -> None:
    """Wait until the worker has answered and the summary was written."""
    page.wait_for_timeout(900)
    if not page.evaluate(ANSWERED):  # long texts on a busy machine
        page.wait_for_function(ANSWERED)
        page.wait_for_timeout(900)


def losses(page) -> dict[str, list[float]]:
    """The table of losses: by scheme, one number for each span, NaN where there is none."""
    rows = page.locator(".loss tbody tr").all()
    cells = [row.locator("th, td").all_inner_texts() for row in rows]
    return {name: [float(x.replace("–", "nan")) for x in values] for name, *values in cells}


def text_of(name: str) -> str:
    """The Markdown around a chapter's model."""
    cells = json.loads((ROOT / "book" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return next("".join(cell["source"]) for cell in cells if cell["id"] == "live-model")


def preset(name: str) -> dict[str, str]:
    """What a page's model shows at the beginning: the attributes of its element."""
    text = text_of(name) if name != "index" else (ROOT / "book" / "index.md").read_text("utf-8")
    return dict(re.findall(r'data-(\w+)="([^"]*)"', text))
