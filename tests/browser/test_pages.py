"""What holds of every page of the built site, opened in Chromium."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from nbformat import validate

from tests.browser.conftest import (
    NOW,
    REFERENCE,
    host,
    listed_pages,
    page_or_file,
    quick_view,
)
from tests.halves import some_now

MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("test", "thing"),
    [
        ("test_pages.py::test_axe[book/05-rope-laptop-dark]", "book/05-rope"),
        ("test_playing.py::test_figures[book/05-rope]", "book/05-rope"),
        ("test_pages.py::test_colours[dark-book/index]", "book/index"),
        ("test_pages.py::test_axe[index-phone-light]", "index"),
        ("test_lab.py::test_who[arguments0-work-learner]", "test_lab.py"),
        ("test_lab.py::test_menus", "test_lab.py"),
    ],
)
def test_tests_are_grouped_by_page(test, thing):
    assert page_or_file(test) == thing


def test_every_page_is_visited(html):
    built = {str(path.relative_to(html).with_suffix("")) for path in html.rglob("*.html")}
    built = {name for name in built if not name.startswith("_")}
    visited = set(listed_pages())
    assert {name for name in built - visited if not name.startswith(REFERENCE)} == set()
    assert visited <= built


def test_nothing_is_asked_of_anybody_else(opened, base):
    ours = host(base)
    others = [url for url in opened.requests if urlsplit(url).scheme not in ("data", "blob")]
    assert [url for url in others if host(url) != ours] == []
    assert len(others) > 1  # the recorder works
    # A connection that is made beforehand asks too, and is no request.
    ahead = "[...document.querySelectorAll('link[rel~=preconnect], link[rel~=dns-prefetch]')]"
    assert opened.page.evaluate(f"{ahead}.map(link => link.href)") == []


def test_nothing_is_missing_and_no_script_complains(opened):
    assert opened.refused == []
    assert opened.messages == []


def test_every_formula_is_typeset(opened):
    # .math: what Sphinx left for MathJax; math in cells' outputs comes as .output .math too
    counts = opened.page.evaluate(
        """() => ({
            wanted: document.querySelectorAll('.math').length,
            typeset: document.querySelectorAll('.math mjx-container').length,
            failed: [...document.querySelectorAll('mjx-merror, [data-mjx-error]')]
                .map(node => node.getAttribute('data-mjx-error') || node.textContent),
        })"""
    )
    assert counts["failed"] == []
    # A macro that MathJax does not know it prints in red, a label that there is not as "(???)".
    spoken = opened.page.locator(".math mjx-assistive-mml").all_text_contents()
    assert [words for words in spoken if re.search(r"\\[a-zA-Z]|\?\?\?", words)] == []
    assert len(spoken) == counts["typeset"]
    assert counts["typeset"] == counts["wanted"]


def test_no_raw_tex_is_left(opened):
    text = opened.page.evaluate(
        """() => {
            const copy = (document.querySelector('article') || document.body).cloneNode(true);
            copy.querySelectorAll('pre, code, mjx-container, script').forEach(n => n.remove());
            return copy.textContent;
        }"""
    )
    for mark in ("\\(", "\\)", "\\[", "$$", "\\begin{", "\\frac", "(???)"):
        assert mark not in text, text[max(0, text.index(mark) - 60) :][:120]
    assert re.findall(r"\$[^$\n]*[\\_^{][^$\n]*\$", text) == []


# It takes half a minute for a chapter, and chapters are alike: every third page, and some now.
AXE_NOW = ("book/index", "book/12-pretrained", "book/misconceptions")
AXE = sorted({*AXE_NOW, *listed_pages()[::3]})


@pytest.mark.parametrize("name", some_now(AXE, AXE_NOW))
def test_axe_finds_nothing(name, visit, axe):
    opened = visit(name, *quick_view(name))
    opened.look()
    assert axe(opened) == []


@pytest.mark.parametrize("size", ["phone", "laptop"])
def test_the_page_does_not_scroll_sideways(opened, size):
    widths = opened.look(size).evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths[0] <= widths[1]


def test_images_say_what_they_show(opened):
    images = opened.page.evaluate(
        """() => [...document.querySelectorAll('img')].map(image => ({
            alt: image.getAttribute('alt'),
            file: image.src.startsWith('data:') ? '' : image.src.split('/').pop().split('?')[0],
            inText: image.closest('article') !== null,
            loaded: image.complete && image.naturalWidth > 0,
        }))"""
    )
    for image in images:
        assert image["loaded"], image
        assert image["alt"] is not None, image
        if image["inText"]:
            assert len(image["alt"].split()) >= 3, image  # a sentence, not a file name
            assert not image["file"] or Path(image["file"]).stem not in image["alt"], image


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_colours_follow_the_reader(opened, theme):
    page = opened.look(theme=theme)  # waits until the page has followed
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    filters = page.evaluate(
        """() => [...document.querySelectorAll('.cell_output img:not(.no-invert)')]
            .map(image => getComputedStyle(image).filter)"""
    )
    assert all(("invert" in each) == (theme == "dark") for each in filters)


def test_the_page_is_light(opened):
    assert 0 < opened.weight < 4 * MEGABYTE


class Document(HTMLParser):
    """A built page: its links, the anchors that they may lead to, its formulas in lines."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.names: Counter[str] = Counter()  # how often each id stands on the page
        self.formulas: list[str] = []
        self.inside = False  # a formula
        self.open_lists: list[list] = []  # name and number of entries of each
        self.lists: list[list] = []  # the same, of those that have ended
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]
        self.names.update([attributes["id"]] if attributes.get("id") else [])
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        self.inside = tag == "span" and "math" in (attributes.get("class") or "").split()
        if tag in ("ol", "ul"):
            self.open_lists.append([tag, 0])
        elif tag == "li":
            self.open_lists[-1][1] += 1

    def handle_endtag(self, tag):
        if tag in ("ol", "ul"):
            self.lists.append(self.open_lists.pop())

    def handle_data(self, data):
        if self.inside:
            self.formulas.append(data)
        self.inside = False


@pytest.fixture(scope="module")
def documents(html) -> dict[Path, Document]:
    paths = [path for path in html.rglob("*.html") if "_static" not in path.parts]
    return {path: Document(path) for path in paths}


def test_links_and_anchors_lead_somewhere(documents):
    broken, checked = [], 0
    for path, document in documents.items():
        for address in document.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                broken.append(f"{path.name}: {address}")
            elif parts.fragment and target in documents:
                if unquote(parts.fragment) not in documents[target].anchors:
                    broken.append(f"{path.name}: {address} (no such anchor)")
    assert broken == []
    assert checked > 1000


def test_an_id_stands_once_on_a_page(documents):
    doubled = {
        path.name: [name for name, count in document.names.items() if count > 1]
        for path, document in documents.items()
    }
    assert {page: names for page, names in doubled.items() if names} == {}


def test_no_number_begins_a_list_by_accident(documents):
    """A line of the source that begins with "1." ends the paragraph, and starts a list."""
    lists = {path.name: document.lists for path, document in documents.items()}
    assert sum(["ol", 3] in each for each in lists.values()) > 5
    assert [name for name, each in lists.items() if ["ol", 1] in each] == []


CHAPTERS = [name for name in listed_pages() if name.split("/")[-1][:2].isdigit()]


@pytest.mark.parametrize("name", some_now(CHAPTERS, NOW))
def test_a_chapter_has_formulas_and_can_be_downloaded(name, visit, html):
    page = visit(name, *quick_view(name)).page
    assert page.locator("mjx-container").count() > 0
    link = page.locator(".btn-download-source-button")
    address = urlsplit(link.evaluate("node => node.href")).path
    assert address.endswith(f"{name}.ipynb")
    validate(json.loads((html / address.lstrip("/")).read_text(encoding="utf-8")))


def test_no_formula_in_a_line_breaks_it(documents):
    r"""In a line, ``\\alpha`` is a mistyped ``\alpha``: it breaks the line and prints letters."""
    formulas = [(path.name, text) for path in documents for text in documents[path].formulas]
    assert len(formulas) > 1000
    assert [each for each in formulas if r"\\" in each[1]] == []


def test_wide_formulas_and_tables_scroll_inside_themselves(opened):
    """On a phone, whatever is wider than its place stands in something that scrolls."""
    escaped = opened.look("phone").evaluate(
        """() => {
            const scrolls = node => {
                for (let n = node.parentElement; n; n = n.parentElement) {
                    if (n.tagName === 'ARTICLE') return false;
                    const style = getComputedStyle(n);
                    if (['auto', 'scroll', 'hidden'].includes(style.overflowX)) return true;
                }
                return false;
            };
            return [...document.querySelectorAll('article mjx-container, article table')]
                .filter(node => node.getBoundingClientRect().right > innerWidth + 1)
                .filter(node => !scrolls(node))
                .map(node => node.outerHTML.slice(0, 120));
        }"""
    )
    assert escaped == []


def test_a_formula_stands_whole_on_a_phone(opened):
    """A formula that runs on behind the edge looks complete, and a term is missing."""
    cut = opened.look("phone").evaluate(
        """() => [...document.querySelectorAll('article mjx-container[display]')]
            .filter(node => node.scrollWidth > node.clientWidth)
            .map(node => `${node.parentElement.id} ${node.scrollWidth} > ${node.clientWidth}`)"""
    )
    assert cut == []
    inline = opened.look("phone").evaluate(
        """() => {
            const block = node => {  // which cuts it off
                let at = node.parentElement;
                while (getComputedStyle(at).display.startsWith('inline')) at = at.parentElement;
                return at;
            };
            return [...document.querySelectorAll('article mjx-container:not([display])')]
                .filter(node => node.offsetWidth && !node.closest('table, pre'))
                .filter(node => node.getBoundingClientRect().right
                    > block(node).getBoundingClientRect().right + 1)
                .map(node => block(node).textContent.slice(0, 90));
        }"""
    )
    assert inline == []
