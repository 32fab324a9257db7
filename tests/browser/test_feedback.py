"""The feedback page as its learner opens it: on a phone, in the dark, by keyboard, on paper."""

import importlib.util
import json
import sys

import pytest

from tests.browser.conftest import ROOT, SIZES, Visit
from tests.halves import some_now

# tests/grading is no package: it would hide the folder grading/.
GRADING = ROOT / "tests" / "grading"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of exercise 01: all right, all wrong, refused, and late with a comment and a hint."""
    sys.path.insert(0, str(GRADING))
    try:
        spec = importlib.util.spec_from_file_location(
            "feedback_pages", GRADING / "test_feedback.py"
        )
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    finally:
        sys.path.remove(str(GRADING))
    feedback, slug = made.feedback, "01-attention"
    folder = tmp_path_factory.mktemp("feedback")
    right = made.handed_in(slug, lambda number, cell: None)
    full = {
        cell.metadata.nbgrader.grade_id: float(cell.metadata.nbgrader.points)
        for cell in right.cells
        if made.is_grade(cell)
    }
    late = made.handed_in(slug, made.fails)
    for cell in late.cells:
        for output in cell.get("outputs", []):
            output.evalue += "\nin line 1 of the cell, in `softmax`: " + FIRST
    feedback.add_hints(
        late, {"softmax-edges": [feedback.Hint("This looks like `x`.", "https://example.org/")]}
    )
    days = {"handed_in": "2026-03-03 15:00 UTC", "due": "2026-03-02 12:00 UTC", "late": 97_200.0}
    notebooks = {
        "full": (right, full, feedback.About("Ada Lovelace"), 0.0, {}),
        "wrong": (made.handed_in(slug, made.without_end), {}, feedback.About("bob"), 0.0, {}),
        "refused": (feedback.refusal("The file is empty."), {}, feedback.About("eve"), 0.0, {}),
        "late": (
            late,
            {"softmax-values": 1.0},
            feedback.About("Léa", **days),
            0.5,
            {"softmax": "Nearly: look at $\\frac{a}{b}$ again."},
        ),
    }
    for name, (notebook, points, about, penalty, comments) in notebooks.items():
        page = feedback.page(
            notebook,
            slug,
            points=points,
            max_score=18.0,
            penalty=penalty,
            comments=comments,
            about=about,
            config=made.Config(),
        )
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


FIRST = "def softmax(scores: torch.Tensor, dim: int) -> torch.Tensor:"
NAMES = ("full", "wrong", "refused", "late")
VIEWS = [("phone", "light"), ("phone", "dark"), ("laptop", "light"), ("laptop", "dark")]


@pytest.fixture
def opened(browser, pages):
    """Open a page in a view; the visit has its requests and the messages of the browser."""
    contexts = []

    def open_page(name: str, size: str = "laptop", theme: str = "light") -> Visit:
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme
        )
        contexts.append(context)
        visit = Visit(context.new_page(), (pages / f"{name}.html").as_uri(), size, theme)
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.on("console", lambda message: visit.messages.append(message.text))
        visit.page.goto(visit.address)
        return visit

    yield open_page
    for context in contexts:
        context.close()


EACH = [(name, *view) for name in NAMES for view in VIEWS]


# Each page now in one of the views, and each view with one of the pages.
@pytest.mark.parametrize(("name", "size", "theme"), some_now(EACH, EACH[::5]))
def test_a_page_stands_alone_fits_and_is_accessible(opened, axe, name, size, theme):
    visit = opened(name, size, theme)
    assert [url for url in visit.requests if not url.startswith("data:")] == [visit.address]
    assert not visit.messages
    assert not axe(visit)
    visit.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    width, window = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= window
    assert not axe(visit)
    colours = visit.page.evaluate(
        "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
    )
    ink, ground = (sum(json.loads(f"[{each[4:-1]}]")) for each in colours)
    assert (ink > ground) is (theme == "dark")


@pytest.mark.parametrize("size", ["phone", "laptop"])
def test_the_score_and_the_first_failure_are_on_the_first_screen(opened, size):
    page = opened("late", size).page
    height = page.viewport_size["height"]
    for place in ("h1", ".who", ".total", ".facts .late", ".failure"):
        box = page.locator(place).first.bounding_box()
        assert 0 <= box["y"] < height, place


def test_by_keyboard_a_learner_gets_to_the_line_and_opens_what_is_folded(opened):
    page = opened("late").page
    page.locator(".failure .where a").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector(':target').tagName") == "MARK"
    assert page.locator("mark:target").is_visible()
    page.locator("details.given summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.given").first.get_attribute("open") is not None


def test_a_failure_is_marked_by_words_and_a_sign(opened):
    page = opened("late").page
    for place in (".failure h3", ".test.failed h3", "nav li.failed"):
        text = page.locator(place).first.inner_text()
        assert "✗" in text
        assert "failed" in text
    script = "getComputedStyle(document.querySelector('mark.l'), '::after').content"
    assert "a failure names this line" in page.evaluate(script)


def test_formulas_are_typeset(opened):
    page = opened("full").page
    page.locator("details.given").nth(0).evaluate("each => each.open = true")
    fraction = page.locator("mfrac").first
    top, below = (fraction.locator(f":scope > :nth-child({n})").bounding_box() for n in (1, 2))
    assert top["y"] + top["height"] <= below["y"] + 1
    assert "$" not in page.locator("details.given .text").first.inner_text()


def test_on_paper_the_learners_cells_and_the_failures_are_there(opened):
    page = opened("late").page
    page.emulate_media(media="print")
    assert page.locator(".failure").first.is_visible()
    assert page.locator(".answer").first.is_visible()
    assert not page.locator("details.given").first.is_visible()
    assert page.pdf().startswith(b"%PDF")
