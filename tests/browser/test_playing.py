"""Every figure to play with, on the page that was built: it moves, it says so, it stands still."""

import json
import re

import nbformat
import pytest
from bs4 import BeautifulSoup

from tests.browser.conftest import NOW, ROOT, listed_pages, quick_view
from tests.halves import some_now

PLAYS = re.compile(
    r"^(?:SliderFigure|(?:\w+\.)?HeadBrowser)\([^\"]*\bname=\"([a-z0-9-]+)\"", re.MULTILINE
)


def written(name: str) -> list[str]:
    """The figures that a page's notebook makes."""
    path = ROOT / f"{name}.ipynb"
    if not path.is_file():
        return []
    cells = nbformat.read(path, as_version=4).cells
    return [script for cell in cells for script in PLAYS.findall(cell.source)]


WITH_FIGURES = [name for name in listed_pages() if written(name)]
# What a figure shows and says, for eyes and for ears.
STATE = """figure => ({
    picture: figure.querySelector('svg').innerHTML,
    drawn: [...figure.querySelectorAll('svg *')].filter(each => each.tagName !== 'text')
        .map(each => each.outerHTML).join(),
    described: figure.querySelector('svg').getAttribute('aria-label'),
    said: [...figure.querySelectorAll('output')].map(each => each.textContent).join(),
    values: [...figure.querySelectorAll('input, select')]
        .map(each => each.getAttribute('aria-valuetext') || String(each.checked) + each.value),
    beside: [...figure.querySelectorAll('label b')].map(each => each.textContent),
    spoken: [...figure.querySelectorAll('[type=range]')]
        .map(each => each.getAttribute('aria-valuetext')),
})"""


BACK = """(control, value) => {
    control.value = value;
    control.dispatchEvent(new Event('input'));
}"""


def moved(figure, before: dict, place: int) -> dict:
    """The state now; the control at ``place`` has another value, and the figure shows it."""
    now = figure.evaluate(STATE)
    assert now["values"][place] != before["values"][place]
    assert now["spoken"] == now["beside"]
    return now


def test_every_notebook_figure_is_on_its_page(html):
    assert len(WITH_FIGURES) >= 12
    for name in WITH_FIGURES:
        page = (html / f"{name}.html").read_text(encoding="utf-8")
        assert re.findall(r'class="slider-figure" id="figure-([a-z0-9-]+)"', page) == written(name)


@pytest.mark.parametrize("name", some_now(WITH_FIGURES, NOW))
def test_figures_move_by_keyboard_and_by_pointer(name, visit):
    page = visit(name, *quick_view(name)).look("laptop")
    for figure in page.locator(".slider-figure").all():
        figure.scroll_into_view_if_needed()
        controls = figure.locator("input, select").all()
        assert controls
        start = figure.evaluate(STATE)
        changes = {place: [] for place in range(len(controls))}
        for place, control in enumerate(controls):
            kind = control.get_attribute("type") or "select"
            before, value = figure.evaluate(STATE), control.input_value()
            if kind == "range":
                # from one end to the other by keys, and back to where it was
                control.press("Home")
                first = figure.evaluate(STATE)
                control.press("ArrowRight")
                changes[place].append((first, moved(figure, first, place)))
                control.press("End")
                changes[place].append((first, moved(figure, first, place)))
                # to the left end by pointer
                box = control.bounding_box()
                page.mouse.click(box["x"] + 2, box["y"] + box["height"] / 2)
                assert figure.evaluate(STATE)["values"] == first["values"]
                control.evaluate(BACK, value)
            elif kind == "checkbox":
                control.press("Space")
                changes[place].append((before, moved(figure, before, place)))
                control.click()
            else:
                last = str(control.locator("option").count() - 1)
                control.press("ArrowUp" if value == last else "ArrowDown")
                changes[place].append((before, moved(figure, before, place)))
                control.select_option(value)
        end = figure.evaluate(STATE)
        assert end == start  # the same controls, the same picture
        # Some move of each control changes the picture, and of some control what is drawn in it.
        for moves in changes.values():
            assert any(a["picture"] != b["picture"] for a, b in moves)
        every = [move for moves in changes.values() for move in moves]
        assert any(a["drawn"] != b["drawn"] for a, b in every)
        for a, b in every:  # what is drawn is also said
            if a["picture"] != b["picture"]:
                assert (a["said"], a["described"]) != (b["said"], b["described"]), b["said"]


# On the page alone: a class of the theme's own can move or stretch what a figure draws.
OUTSIDE = """figure => {
    const box = figure.querySelector('svg').getBoundingClientRect();
    return [...figure.querySelectorAll('svg :is(rect, path, text)')].filter(mark => {
        const r = mark.getBoundingClientRect();
        return r.width + r.height && (r.left < box.left - 1 || r.right > box.right + 1
            || r.top < box.top - 1 || r.bottom > box.bottom + 1);
    }).map(mark => mark.outerHTML);
}"""


@pytest.mark.parametrize("name", some_now(WITH_FIGURES, NOW))
@pytest.mark.parametrize("size", ["phone", "laptop"])
def test_what_is_drawn_stays_in_its_picture(name, size, visit):
    page = visit(name, *quick_view(name)).look(size)
    for figure in page.locator(".slider-figure").all():
        assert figure.evaluate(OUTSIDE) == []


@pytest.mark.parametrize("name", some_now(WITH_FIGURES, NOW))
def test_without_a_script_a_figure_shows_its_first_frame(name, html):
    page = BeautifulSoup((html / f"{name}.html").read_text(encoding="utf-8"), "lxml")
    for figure in page.select(".slider-figure"):
        picture = figure.find("svg")
        drawn = [m for m in picture.select("path, rect") if m.get("class", [""])[0] != "grid"]
        assert sum(bool(mark.get("d") or mark.get("width")) for mark in drawn) >= 2
        assert len(picture["aria-label"].split()) >= 5
        assert "NaN" not in str(picture)
        assert figure.select_one("p.note:not([hidden])").text
        for control in figure.select("input, select"):
            assert control.has_attr("disabled")
            assert control.find_parent("label").find("span").get_text(strip=True)


@pytest.mark.parametrize("name", some_now(WITH_FIGURES, NOW))
def test_each_number_in_the_table_is_ready(name, html):
    """The table has a value for each combination of the controls that it depends on."""
    text = (html / f"{name}.html").read_text(encoding="utf-8")
    for data in re.findall(r"document\.currentScript,(.*?)\)</script>", text, re.DOTALL):
        given = json.loads(data)
        if isinstance(given, dict):  # a head browser, which has no such table
            continue
        for _, _, strides, values in given:
            assert values
            assert len(values) >= max(strides, default=0)
            assert not any("nan" in str(value).lower() for value in values)
