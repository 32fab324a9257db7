"""How long until a page's formulas can be read and its figures move, beside a bare page.

``python -m benchmarks.pages [--rounds 5]``, after ``make book``: every page is opened in headless
Chromium with an empty cache, from a server on this machine, in turn with a page of the same theme
that holds one sentence. The clock is the browser's own and starts with the navigation.

- *first*: the formulas of the first window are typeset, and their fonts are loaded.
- *all*: so are all others on the page.
- *figures*: the page has drawn a frame after its script has enabled the last control.
- *bare*: the bare page has loaded, fonts included.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.machine import ROOT, Table, describe, ratio
from tools.book import server

HTML = ROOT / "_build" / "html"
MATH_OR_FIGURE = re.compile('class="(math|slider-figure")')
SIZE = {"width": 1280, "height": 800}
# Notes the moments at which the page is ready; `done` is true once all are known.
CLOCK = """
window.pageReady = {};
const due = () => {
    const figures = document.querySelectorAll('.slider-figure').length;
    const disabled = document.querySelectorAll('.slider-figure :disabled').length;
    if (figures && !disabled) pageReady.figures ??= performance.now();
    const seen = [...document.querySelectorAll('.math')].filter(formula => {
        const {width, top, bottom} = formula.getBoundingClientRect();
        return width && bottom > 0 && top < innerHeight;
    });
    const typeset = seen.every(formula => formula.querySelector('mjx-container'));
    if (typeset && document.fonts.status === 'loaded') pageReady.first ??= performance.now();
    if (!(pageReady.done && pageReady.first)) requestAnimationFrame(due);
};
addEventListener('DOMContentLoaded', () => requestAnimationFrame(due));
addEventListener('load', () => {
    const typeset = window.MathJax?.startup?.promise ?? Promise.resolve();
    typeset.then(() => document.fonts.ready).then(() => {
        pageReady.all = performance.now();
        pageReady.done = true;
    });
});
"""
COUNTS = """({
    formulas: document.querySelectorAll('.math').length,
    typeset: document.querySelectorAll('.math mjx-container').length,
    figures: document.querySelectorAll('.slider-figure').length,
})"""


@contextmanager
def served(folder: Path):
    """Serve the folder; the server's address."""
    with server(folder, 8800) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


def bare_site(folder: Path) -> Path:
    """Build a site of the same theme with one page that holds one sentence."""
    source = folder / "source"
    source.mkdir()
    (source / "conf.py").write_text('html_theme = "sphinx_book_theme"\nproject = "bare"\n')
    (source / "index.rst").write_text("Bare\n====\n\nOne sentence.\n")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-b",
        "html",
        str(source),
        str(folder / "html"),
    ]
    subprocess.run(command, check=True)
    return folder / "html"


def open_once(browser: Browser, address: str) -> tuple[dict, dict]:
    """Milliseconds until each thing was ready, and how many there are."""
    context = browser.new_context(viewport=SIZE)
    try:
        page = context.new_page()
        page.add_init_script(CLOCK)
        page.goto(address, wait_until="load")
        page.wait_for_function("window.pageReady.done && window.pageReady.first")
        return page.evaluate("({...window.pageReady})"), page.evaluate(COUNTS)
    finally:
        context.close()


def pages() -> list[str]:
    """The pages with formulas or figures, by their addresses."""
    paths = sorted((HTML / "book").glob("*.html"))
    return [path.name for path in paths if MATH_OR_FIGURE.search(path.read_text(encoding="utf-8"))]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.pages", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each page is opened")
    options = parser.parse_args(arguments)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium or not (HTML / "index.html").is_file():
        print("this needs Chromium and a built book (`make book`)", file=sys.stderr)
        return 2
    print(f"{describe()}; {options.rounds} rounds, empty cache\n")
    names = pages()
    with (
        tempfile.TemporaryDirectory() as folder,
        served(HTML) as ours,
        served(bare_site(Path(folder))) as bare,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        open_once(browser, f"{bare}/index.html")  # the first page also starts the browser's parts
        times: dict[str, list[dict]] = {name: [] for name in names}
        beside: list[float] = []
        counts = {}
        for _ in range(options.rounds):
            beside.append(open_once(browser, f"{bare}/index.html")[0]["all"])
            for name in names:
                ready, counts[name] = open_once(browser, f"{ours}/book/{name}")
                times[name].append(ready)
        browser.close()
    table = Table(
        "page",
        "formulas",
        "first, ms",
        "all, ms",
        "figures",
        "move, ms",
        "first / bare",
        "all / bare",
    )
    for name in names:
        count = counts[name]
        if count["formulas"] != count["typeset"]:
            raise AssertionError(f"{name}: {count['typeset']} of {count['formulas']} typeset")
        first, every = ([each[what] for each in times[name]] for what in ("first", "all"))
        move = [each["figures"] for each in times[name] if "figures" in each]
        table.row(
            name.removesuffix(".html"),
            str(count["formulas"]),
            f"{statistics.median(first):.0f}",
            f"{statistics.median(every):.0f}",
            str(count["figures"]),
            f"{statistics.median(move):.0f}" if move else "",
            ratio(first, beside),
            ratio(every, beside),
        )
    print(f"\nthe bare page: {statistics.median(beside):.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
