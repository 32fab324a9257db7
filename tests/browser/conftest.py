"""The built site, a server for it, and a Chromium that opens its pages.

A page is opened once per view (its window size and colours), and every test looks at that visit.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from playwright.sync_api import Page, sync_playwright

from tests.browser.live_model import RUNNING, SCHEMES, STATIC, extension
from tests.halves import some_now
from tests.processes import shared_by
from tools import book

ROOT = book.ROOT
HTML = ROOT / "_build" / "html"
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
REMEDY = "install Chromium (Debian, Ubuntu: apt-get install chromium)"
ARGUMENTS = (
    "--no-sandbox",  # as root, Chromium does not start otherwise
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SIZES = {"phone": (390, 844), "laptop": (1280, 800)}


# WCAG 2.0 to 2.2, levels A and AA, and best practice. axe leaves out the size of targets (2.5.8,
# new in 2.2) unless it is named.
RUN_AXE = """part => axe.run(part, {
    runOnly: {type: "tag", values: [
        "wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]},
    rules: {"target-size": {enabled: true}},
    resultTypes: ["violations"],  // of what is right, no list of places: a quarter of the time
}).then(result => JSON.stringify([...result.violations, result.passes.length]))"""
REFERENCE = "book/api/"  # pages made from docstrings, all alike: the largest stands for them


@cache
def listed_pages() -> list[str]:
    """The pages to visit, by their addresses without ``.html``."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    below = [page for entry in entries for page in entry.get("sections", [])]
    names = [str(Path(entry["file"]).with_suffix("")) for entry in [*entries, *below]]
    names = [name for name in names if not name.startswith(REFERENCE)]
    return ["index", "search", toc["root"], *names, f"{REFERENCE}transformer"]


def page_or_file(nodeid: str) -> str:
    """The page that a test looks at, from its parameters; the file of a test without a page."""
    path, _, name = nodeid.partition("::")
    given = name.partition("[")[2].removesuffix("]")
    matches = [
        page for page in listed_pages() if re.search(rf"(?:^|-){re.escape(page)}(?:-|$)", given)
    ]
    return max(matches, key=len, default=path)


# Pages are shared out, not files: all that looks at a page runs where it is open.
pytest_xdist_make_scheduler = shared_by(page_or_file)


@pytest.fixture(autouse=True)
def in_one_process(request, tmp_path_factory) -> None:
    """Fail where a page, or a file whose tests need one another, is divided all the same."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        name = page_or_file(request.node.nodeid).replace("/", "-")
        seen = tmp_path_factory.getbasetemp().parent / f"looked-at-{name}"
        if not seen.exists():
            seen.write_text(worker)
        assert seen.read_text() == worker, f"{name} is looked at in two processes"


# A page costs seconds to open. Each is opened in one of these views; where size or theme matters, a
# test looks at it in the others too (`Visit.look`).
VIEWS = [("phone", "light"), ("laptop", "dark")]
# The pages of `make test`; the others are made of the same parts and come in `make test-long`.
NOW = (
    *("index", "search", "book/index", "book/12-pretrained", "book/13-language-model"),
    *("book/misconceptions", "book/notation", "book/instructors/tests", "book/api/transformer"),
)


def quick_view(name: str) -> tuple[str, str]:
    """The view in which a page is opened."""
    return VIEWS[listed_pages().index(name) % 2]


@dataclass
class Visit:
    """What happened when one page was opened."""

    page: Page
    address: str
    size: str
    theme: str
    requests: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    weight: int = 0

    def look(self, size: str | None = None, theme: str | None = None) -> Page:
        """The page in another window or other colours; ``None`` is as it was opened."""
        width, height = SIZES[size or self.size]
        size = {"width": width, "height": height}
        if self.page.viewport_size != size:
            self.page.set_viewport_size(size)
            self.page.wait_for_timeout(400)  # the theme waits as long before it follows
        theme = theme or self.theme
        self.page.emulate_media(color_scheme=theme, media="screen")
        if self.page.locator("html[data-mode]").count():  # the theme's page, not the redirect
            self.page.wait_for_function(
                "theme => document.documentElement.dataset.theme === theme",
                arg=theme,
                polling=20,
                timeout=5000,
            )
        return self.page


def missing(what: str) -> None:
    """Without a system program a test is left out; in continuous integration none may be."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


@pytest.fixture(scope="session")
def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    missing(f"there is no Chromium: {REMEDY}")


@pytest.fixture(scope="session")
def html() -> Path:
    """The site as it is now: a build in which nothing changed takes seconds."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.book"], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        pytest.fail(f"the book does not build:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return HTML


@pytest.fixture(scope="session")
def base(html):
    """The address of a server that offers the site."""
    with book.server(html, 8700) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def browser(chromium):
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def visit(browser, base):
    """Open ``name`` in a view, wait until it is complete, and remember the visit.

    Only the last few stay open: all of them would take gigabytes, and slow down every new one.
    """
    done: dict[tuple[str, str, str], Visit] = {}
    contexts = {}

    def open_page(name: str, size: str, theme: str) -> Visit:
        if (name, size, theme) in done:
            return done[name, size, theme]
        if (size, theme) not in contexts:
            width, height = SIZES[size]
            contexts[size, theme] = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=theme
            )
        if len(done) == 8:
            done.pop(next(iter(done))).page.close()
        page = contexts[size, theme].new_page()
        seen = Visit(page, f"{base}/{name}.html", size, theme)
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("websocket", lambda socket: seen.requests.append(socket.url))

        def failed(request):
            # The redirect at the root leaves while its icon is still loading: nothing is missing.
            if not (name == "index" and request.failure == "net::ERR_ABORTED"):
                seen.refused.append(f"{request.failure} {request.url}")

        def answered(response):
            if response.status >= 400:
                seen.refused.append(f"{response.status} {response.url}")

        def log(message):
            if message.type in ("error", "warning"):
                seen.messages.append(f"{message.type}: {message.text}")

        page.on("requestfailed", failed)
        page.on("response", answered)
        page.on("console", log)
        page.on("pageerror", lambda error: seen.messages.append(f"script: {error}"))
        page.goto(seen.address, wait_until="networkidle")
        if page.locator("script[src*=mathjax]").count():
            page.wait_for_function("window.MathJax?.startup?.promise !== undefined")
            page.evaluate("MathJax.startup.promise.then(() => document.fonts.ready).then(() => 0)")
        seen.weight = page.evaluate(
            "[...performance.getEntriesByType('navigation'),"
            " ...performance.getEntriesByType('resource')]"
            ".reduce((sum, entry) => sum + entry.decodedBodySize, 0)"
        )
        done[name, size, theme] = seen
        return seen

    yield open_page
    for context in contexts.values():
        context.close()


@pytest.fixture(params=some_now(listed_pages(), NOW))
def opened(request, visit) -> Visit:
    """Every page, opened in one view."""
    return visit(request.param, *quick_view(request.param))


@pytest.fixture(scope="session")
def axe():
    """Run axe-core on a visit, or on a part of its page; return one line for each violation."""
    code = AXE.read_text(encoding="utf-8")

    def run(seen: Visit, part: str = "html") -> list[str]:
        seen.page.evaluate(code)
        result = json.loads(seen.page.evaluate(RUN_AXE, part))
        assert result.pop() >= 20  # rules that found something to look at
        return [
            f"{rule['id']}: {node['html'][:200]} ({node['failureSummary']})"
            for rule in result
            for node in rule["nodes"]
        ]

    return run


@pytest.fixture(scope="session")
def bare(browser):
    """A page with the models alone, all of them made: ``made.rope``, with ``lm``'s functions."""
    page = browser.new_page()
    page.set_content("<title>models</title>")
    page.add_script_tag(path=STATIC / "model.js")
    page.evaluate("""() => {
        window.lm = languageModels();
        window.made = {};
        window.stored = {};
        window.registerLanguageModel = each => {
            stored[each.scheme] = each;
            made[each.scheme] = lm.build(each);
        };
    }""")
    for scheme in SCHEMES:
        page.add_script_tag(content=extension().weights_script(scheme))
    yield page
    page.close()


@pytest.fixture
def opened_at(browser, base):
    """Open a chapter in a window of its own, scroll to its model, and wait until it runs.

    Formulas stay as they are written unless asked for: they take longer than all the rest.
    """
    contexts = []

    def open_page(
        name="index",
        size="laptop",
        theme="light",
        address=None,
        late=None,
        formulas=False,
        **options,
    ):
        width, height = SIZES[size]
        viewport = {"width": width, "height": height}
        context = browser.new_context(viewport=viewport, color_scheme=theme, **options)
        contexts.append(context)
        page = context.new_page()
        page.trouble = []
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on("console", lambda m: m.type == "error" and page.trouble.append(m.text))
        if not formulas:
            page.route("**/tex-chtml-full.js*", lambda route: route.fulfill(body=""))
        if late:  # a file that arrives a second later than it could
            page.route(late, lambda route: (time.sleep(1), route.continue_()))
        page.goto(address or f"{base}/book/{name}.html", wait_until="load")
        page.locator(".language-model").scroll_into_view_if_needed()
        page.wait_for_function(RUNNING, timeout=60_000)
        return page

    yield open_page
    for context in contexts:
        context.close()


def host(address: str) -> str:
    return urlsplit(address).netloc
