"""What holds of every page of the built site, opened in Chromium."""

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from nbformat import validate

from tests.browser.conftest import REFERENCE, host, listed_pages

MEGABYTE = 1_000_000


def test_every_page_is_visited(html):
    built = {str(path.relative_to(html).with_suffix("")) for path in html.rglob("*.html")}
    built = {name for name in built if not name.startswith("_")}
    visited = set(listed_pages())
    assert {name for name in built - visited if not name.startswith(REFERENCE)} == set()
    assert visited <= built


def test_nothing_is_asked_of_anybody_else(seen, base):
    ours = host(base)
    others = [url for url in seen.requests if urlsplit(url).scheme not in ("data", "blob")]
    assert [url for url in others if host(url) != ours] == []
    assert len(others) > 1  # the recorder works


def test_nothing_is_missing_and_no_script_complains(seen):
    assert seen.refused == []
    assert seen.messages == []


def test_every_formula_is_typeset(seen):
    # .math: what Sphinx left for MathJax; math in cells' outputs comes as .output .math too
    counts = seen.page.evaluate(
        """() => ({
            wanted: document.querySelectorAll('.math').length,
            typeset: document.querySelectorAll('.math mjx-container').length,
            failed: [...document.querySelectorAll('mjx-merror, [data-mjx-error]')]
                .map(node => node.getAttribute('data-mjx-error') || node.textContent),
        })"""
    )
    assert counts["failed"] == []
    assert counts["typeset"] == counts["wanted"]


def test_no_raw_tex_is_left(seen):
    text = seen.page.evaluate(
        """() => {
            const copy = (document.querySelector('article') || document.body).cloneNode(true);
            copy.querySelectorAll('pre, code, mjx-container, script').forEach(n => n.remove());
            return copy.textContent;
        }"""
    )
    for mark in ("\\(", "\\)", "\\[", "$$", "\\begin{", "\\frac", "(???)"):
        assert mark not in text, text[max(0, text.index(mark) - 60) :][:120]


def test_the_page_does_not_scroll_sideways(seen):
    widths = seen.page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths[0] <= widths[1]


def test_images_say_what_they_show(seen):
    images = seen.page.evaluate(
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


def test_axe_finds_nothing(seen, axe):
    assert axe(seen) == []


def test_the_colours_follow_the_reader(seen):
    assert seen.page.evaluate("document.documentElement.dataset.theme") == seen.theme
    filters = seen.page.evaluate(
        """() => [...document.querySelectorAll('.cell_output img:not(.no-invert)')]
            .map(image => getComputedStyle(image).filter)"""
    )
    assert all(("invert" in each) == (seen.theme == "dark") for each in filters)


def test_the_page_is_light(seen):
    assert 0 < seen.weight < 4 * MEGABYTE


def test_links_and_anchors_lead_somewhere(html):
    soups = {
        path: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        for path in html.rglob("*.html")
        if "_static" not in path.parts
    }
    broken, checked = [], 0
    for path, soup in soups.items():
        for node in soup.select("[href], [src]"):
            address = node.get("href") or node.get("src") or ""
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                broken.append(f"{path.name}: {address}")
            elif parts.fragment and target in soups:
                name = unquote(parts.fragment)
                if not soups[target].find(id=name) and not soups[target].find(attrs={"name": name}):
                    broken.append(f"{path.name}: {address} (no such anchor)")
    assert broken == []
    assert checked > 100


CHAPTERS = [name for name in listed_pages() if name.split("/")[-1][:2].isdigit()]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_has_formulas_and_can_be_downloaded(name, visit, html):
    page = visit(name, "laptop", "dark").page
    assert page.locator("mjx-container").count() > 0
    link = page.locator(".btn-download-source-button")
    address = urlsplit(link.evaluate("node => node.href")).path
    assert address.endswith(f"{name}.ipynb")
    validate(json.loads((html / address.lstrip("/")).read_text(encoding="utf-8")))


def test_no_formula_in_a_line_breaks_it(html):
    r"""In a line, ``\\alpha`` is a mistyped ``\alpha``: it breaks the line and prints letters."""
    found = []
    for name in listed_pages():
        soup = BeautifulSoup((html / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        found += [f"{name}: {node.text}" for node in soup.select("span.math") if r"\\" in node.text]
    assert found == []


def test_search_finds_words_of_the_book(visit, base, browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{base}/search.html?q=attention", wait_until="networkidle")
    page.locator("#search-results li a").first.wait_for(timeout=10_000)
    found = page.locator("#search-results li a").all_inner_texts()
    context.close()
    assert found


def test_wide_formulas_and_tables_scroll_inside_themselves(visit):
    """On a phone, whatever is wider than its place stands in something that scrolls."""
    for name in listed_pages():
        page = visit(name, "phone", "light").page
        escaped = page.evaluate(
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
        assert escaped == [], name
