"""Terms of the glossary: linked where a chapter first uses them, explained beside the link."""

import re
import sys
from collections import Counter

import pytest

from tests.browser.conftest import ROOT, SIZES, quick_view
from tests.browser.test_pages import CHAPTERS
from tests.halves import some_now

TERMS = """() => [...document.querySelectorAll('a.term')].map(link => ({
    words: link.textContent,
    anchor: link.hash.slice(1),
    page: link.pathname.split('/').pop(),
    title: link.title,
    misplaced: link.closest(
        'h1, h2, h3, h4, code, pre, figcaption, table, .math, .admonition-title, strong'
    )?.outerHTML.slice(0, 80) ?? '',
    within: link.parentElement.closest('a') !== null,
}))"""


@pytest.fixture(scope="module")
def links():
    sys.path.insert(0, str(ROOT / "book" / "_ext"))
    import glossary_links

    yield glossary_links
    sys.path.remove(str(ROOT / "book" / "_ext"))


@pytest.mark.parametrize(
    ("term", "used", "other"),
    [
        ("vocabulary", ["vocabulary", "Vocabularies"], ["vocabularyless"]),
        ("KV cache", ["KV cache", "KV caches", "KV-cache", "KV\ncache"], ["kv cache"]),
        ("RoPE", ["RoPE"], ["rope", "RoPE-like"]),
        ("pre-norm", ["pre-norm", "Pre-norm", "pre-norms"], ["prenorm"]),
        ("encoder", ["Encoder", "encoders"], ["encoder-decoder", "encoding"]),
        ("low rank", ["low rank", "low-rank"], ["flow rank"]),
    ],
)
def test_a_term_in_running_text(term, used, other, links):
    assert [each for each in used if not links.pattern(term).search(f"a {each}.")] == []
    assert [each for each in other if links.pattern(term).search(f"a {each}.")] == []


@pytest.mark.long
def test_each_chapter_links_each_term_once(html, browser):
    """In running text only, to an entry that there is, with the first sentence of that entry."""
    page = browser.new_page(java_script_enabled=False)  # as it was built
    page.goto((html / "book" / "glossary.html").as_uri())
    meanings = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('dt[id]')].map(
            term => [term.id, term.nextElementSibling.textContent.replace(/\\s+/g, ' ').trim()]))"""
    )
    linked = Counter()
    for name in CHAPTERS:
        page.goto((html / f"{name}.html").as_uri())
        terms = page.evaluate(TERMS)
        assert len(terms) >= 4, name
        for link in terms:
            assert not link["misplaced"], link
            assert not link["within"], link
            assert link["page"] == "glossary.html"
            assert link["title"], link
            assert meanings[link["anchor"]].startswith(link["title"]), link
        anchors = Counter(link["anchor"] for link in terms)
        assert [anchor for anchor, times in anchors.items() if times > 1] == []
        linked.update(anchors)
    page.close()
    # A weight may be a parameter and a pair two of anything: such words lead nowhere.
    assert not {f"term-{word}" for word in ("weight", "pair", "key", "claim")} & set(linked)
    assert len(linked) > 30


def explained(page) -> dict:
    return page.evaluate(
        """() => {
            const tip = document.getElementById('term-tip');
            const link = document.querySelector('a.term[aria-describedby=term-tip]');
            const edge = node => node.getBoundingClientRect().toJSON();
            return {shown: !tip.hidden, text: tip.textContent, term: link?.textContent ?? null,
                tip: edge(tip), link: link && edge(link)};
        }"""
    )


VISIBLE = "document.getElementById('term-tip').checkVisibility({visibilityProperty: true})"


@pytest.mark.parametrize("size", some_now(SIZES, ["laptop"]))
def test_a_term_is_explained_by_keyboard_and_mouse(size, visit, axe):
    seen = visit("book/12-pretrained", *quick_view("book/12-pretrained"))
    page = seen.look(size)
    link = page.locator("a.term", has_text=re.compile("^post-norm$"))
    assert link.get_attribute("title") is None  # or the browser would show it beside ours
    page.keyboard.press("Tab")  # from here on the focus is the keyboard's
    link.focus()
    page.wait_for_function("document.querySelector('#term-tip mjx-container')")
    page.wait_for_function(VISIBLE)
    tooltip = explained(page)
    assert tooltip["shown"]
    assert tooltip["term"] == "post-norm"
    assert tooltip["text"].startswith("A block in which")
    assert "\\(" not in tooltip["text"]
    assert tooltip["tip"]["left"] >= 0
    assert tooltip["tip"]["right"] <= SIZES[size][0]
    # above the line of the link or below it, and not over it
    assert (
        tooltip["tip"]["top"] >= tooltip["link"]["top"] + 10
        or tooltip["tip"]["bottom"] <= tooltip["link"]["top"]
    )
    assert size == "phone" or axe(seen) == []
    page.keyboard.press("Escape")
    assert not explained(page)["shown"]
    assert page.evaluate("document.activeElement.textContent") == "post-norm"
    page.keyboard.press("Tab")
    page.evaluate("document.activeElement.blur()")
    # The mouse may go into the box; when it leaves, the box goes.
    link.hover()
    page.wait_for_function(VISIBLE)
    box = explained(page)["tip"]
    # in one step: on a busy machine several take longer than the box waits
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    page.wait_for_timeout(400)
    assert explained(page)["shown"]
    page.mouse.move(2, 2)
    page.wait_for_function("document.getElementById('term-tip').hidden")


def test_a_finger_follows_the_link(browser, base):
    width, height = SIZES["phone"]
    context = browser.new_context(viewport={"width": width, "height": height}, has_touch=True)
    page = context.new_page()
    page.goto(f"{base}/book/capstone.html")
    page.locator("a.term").first.tap()
    page.wait_for_url("**/glossary.html#term-*")
    context.close()
