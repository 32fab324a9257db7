"""Interactive figures in headless Chromium: written into a file, opened by file://, and moved."""

import math
import re

import pytest

from lib import heads, results
from lib.heads import KINDS, HeadBrowser
from lib.interactive import Axes, Checkbox, Select, Slider, SliderFigure
from tests.halves import some_now
from tests.test_heads import made_up

OFFSETS = list(range(-8, 9, 2))
PAGE = """<!doctype html><html lang="en"{theme}><meta charset="utf-8"><title>t</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<body style="margin:16px">{body}</body></html>"""


def turning(name="turning"):
    """Arrows, a curve, a point and words; every kind of control."""
    plane = Axes(x=(-1.2, 1.2), y=(-1.2, 1.2), equal=True, box=(0, 0, 220, 240))
    curve = Axes(
        x=(-8, 8),
        y=(-1, 1),
        x_label="offset (tokens)",
        y_label="dot product",
        x_ticks=[-8, 0, 8],
        y_ticks=[-1, 0, 1],
        box=(220, 0, 260, 240),
    )

    def frame(offset, pair, curve_too):
        turn = 0.1 if pair == "slow" else 0.8
        xs = range(-8, 9) if curve_too else []
        return [
            plane.arrow(0, 0, 1, 0),
            plane.arrow(0, 0, math.cos(turn * offset), math.sin(turn * offset), series=1),
            curve.line(xs, [math.cos(turn * x) for x in xs], series=2),
            curve.points([offset], [math.cos(turn * offset)], series=1),
            curve.label(0, -0.8, f"offset is {offset}"),
        ]

    return SliderFigure(
        name=name,
        title="A pair that turns",
        controls=[
            Slider("offset", "offset n − m", OFFSETS, "{} tokens", start=0),
            Select("pair", "pair", ["slow", "fast"]),
            Checkbox("curve_too", "draw the curve", start=True),
        ],
        axes=[plane, curve],
        frame=frame,
        alt="A {pair} pair turned by {offset} positions.",
        readout="offset {offset}, {pair} pair",
    )


@pytest.fixture
def show(browser, tmp_path):
    """Open figures in a page; at the end, there was no error and no request but for the page."""
    contexts, seen = [], []

    def opened(*figures, theme="", body="{}", **options):
        file = tmp_path / "page.html"
        body = body.format("".join(figure.html for figure in figures))
        file.write_text(PAGE.format(theme=theme, body=body), encoding="utf-8")
        contexts.append(
            browser.new_context(**{"viewport": {"width": 390, "height": 844}, **options})
        )
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on("console", lambda message: seen.append(f"console: {message.text}"))
        page.on("request", lambda request: seen.append(request.url))
        page.goto(file.as_uri())
        assert seen.pop(0) == file.as_uri()  # the first request is the page itself
        return page

    yield opened
    for context in contexts:
        context.close()
    assert seen == []


def spoken_text(page, figure="#figure-turning"):
    """What each way of reading the figure says."""
    return {
        "value": page.locator(f"{figure} input[type=range]").get_attribute("aria-valuetext"),
        "beside it": page.locator(f"{figure} label b").inner_text(),
        "picture": page.locator(f"{figure} svg").get_attribute("aria-label"),
        "readout": page.locator(f"{figure} output").inner_text(),
        "inside": page.locator(f"{figure} svg text.halo").text_content(),
    }


def expected(offset, pair="slow"):
    number = str(offset).replace("-", "−")
    return {
        "value": f"{number} tokens",
        "beside it": f"{number} tokens",
        "picture": f"A {pair} pair turned by {number} positions.",
        "readout": f"offset {number}, {pair} pair",
        "inside": f"offset is {number}",
    }


def arrow_end(page):
    """Where the second arrow's tip is, in units of its circle."""
    head = page.locator("path.fill.s1").first.get_attribute("d")
    x, y, dx, dy = map(float, re.findall(r"-?[\d.]+", head)[:4])
    left, top, width, height = Axes(
        x=(-1.2, 1.2), y=(-1.2, 1.2), equal=True, box=(0, 0, 220, 240)
    ).inner
    return 2.4 * (x + dx - left) / width - 1.2, 1.2 - 2.4 * (y + dy - top) / height


def test_moves_by_keyboard(show):
    page = show(turning())
    assert spoken_text(page) == expected(0)
    page.keyboard.press("Tab")  # the slider is the first thing to reach
    for key, offset in [
        ("ArrowRight", 2),
        ("ArrowRight", 4),
        ("ArrowLeft", 2),
        ("Home", -8),
        ("End", 8),
    ]:
        page.keyboard.press(key)
        assert spoken_text(page) == expected(offset)
        wanted = (math.cos(0.1 * offset), math.sin(0.1 * offset))
        assert arrow_end(page) == pytest.approx(wanted, abs=0.02)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert spoken_text(page) == expected(8, "fast")
    assert arrow_end(page) == pytest.approx((math.cos(6.4), math.sin(6.4)), abs=0.02)
    page.keyboard.press("Tab")
    assert page.locator("path.line.s2").get_attribute("d") != ""
    page.keyboard.press("Space")
    assert page.locator("path.line.s2").get_attribute("d") == ""


def test_focus_is_visible(show):
    page = show(turning())
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


@pytest.mark.parametrize("touch", [False, True], ids=["pointer", "touch"])
def test_moves_by_pointer_and_touch(show, touch):
    page = show(turning(), has_touch=touch)
    box = page.locator("input[type=range]").bounding_box()
    middle = box["y"] + box["height"] / 2
    if touch:
        page.touchscreen.tap(box["x"] + box["width"] - 2, middle)
    else:
        page.mouse.move(box["x"] + box["width"] / 2, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] + 30, middle, steps=5)
        page.mouse.up()
    assert spoken_text(page) == expected(8)


def test_the_script_wakes_the_controls_and_hides_the_note(show):
    page = show(turning())
    assert page.locator("input:disabled, select:disabled").count() == 0
    assert not page.locator(".note").is_visible()


def test_without_javascript_there_is_a_picture_and_a_note(show):
    page = show(turning(), java_script_enabled=False)
    assert page.locator(".note").is_visible()
    assert page.locator("input:disabled, select:disabled").count() == 3
    assert spoken_text(page) == expected(0)
    assert arrow_end(page) == pytest.approx((1, 0), abs=0.02)
    assert page.locator("svg").bounding_box()["height"] > 100


def test_two_figures_move_alone(show):
    page = show(turning("one"), turning("two"))
    page.locator("#figure-two input[type=range]").press("ArrowRight")
    assert spoken_text(page, "#figure-one") == expected(0)
    assert spoken_text(page, "#figure-two") == expected(2)


def test_the_same_figure_twice_moves_alone(show):
    # JupyterLab can show one output in two places: the script must not search by id.
    page = show(turning(), turning())
    page.locator("input[type=range]").nth(1).press("ArrowRight")
    texts = page.locator("output").all_inner_texts()
    assert texts == [expected(0)["readout"], expected(2)["readout"]]


def test_it_shows_the_frame_of_a_control_that_the_browser_restored(show):
    # Going back to a page, some browsers set the controls as they were left.
    figure = turning()
    figure.html = figure.html.replace('value="4"', 'value="8"')
    assert spoken_text(show(figure)) == expected(8)


def colors(page):
    return page.evaluate(
        """() => { const figure = document.querySelector(".slider-figure"),
        style = getComputedStyle(figure), tick = figure.querySelector("svg text");
        return [style.backgroundColor, style.color, getComputedStyle(tick).fill] }"""
    )


LIGHT = ["rgb(255, 255, 255)", "rgb(34, 40, 50)", "rgb(34, 40, 50)"]
DARK = ["rgb(20, 24, 30)", "rgb(206, 214, 221)", "rgb(206, 214, 221)"]


@pytest.mark.parametrize(
    ("theme", "body", "system", "wanted"),
    [
        ("", "{}", "light", LIGHT),
        ("", "{}", "dark", DARK),
        (' data-theme="dark"', "{}", "light", DARK),
        (' data-theme="light"', "{}", "dark", LIGHT),
        ("", '<div data-jp-theme-light="false">{}</div>', "light", DARK),
        ("", '<div data-jp-theme-light="true">{}</div>', "dark", LIGHT),
        (
            ' data-theme="dark"',
            '<div style="--pst-color-background:#000001;--pst-color-text-base:#fffffe">{}</div>',
            "light",
            ["rgb(0, 0, 1)", "rgb(255, 255, 254)", "rgb(255, 255, 254)"],
        ),
        (
            "",
            '<div style="--jp-layout-color0:#000002;--jp-content-font-color1:#fffffd">{}</div>',
            "light",
            ["rgb(0, 0, 2)", "rgb(255, 255, 253)", "rgb(255, 255, 253)"],
        ),
    ],
    ids=["light", "dark", "page dark", "page light", "lab dark", "lab light", "sphinx", "jupyter"],
)
def test_colors_follow_the_page(show, theme, body, system, wanted):
    page = show(turning(), theme=theme, body=body, color_scheme=system)
    assert colors(page) == wanted


def test_the_books_dark_theme_puts_no_box_behind_it(show):
    body = (
        "<style>html[data-theme=dark] .bd-content div.cell_output "
        ".text_html:not(:has(table.dataframe)){{background-color:#ced6dd;padding:.5rem}}</style>"
        '<div class="bd-content"><div class="cell_output"><div class="text_html">{}</div>'
        "</div></div>"
    )
    page = show(turning(), theme=' data-theme="dark"', body=body)
    box = page.locator(".text_html")
    assert box.evaluate("e => getComputedStyle(e).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert box.evaluate("e => getComputedStyle(e).padding") == "0px"


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_it_fits(show, width):
    page = show(turning(), viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("svg").bounding_box()["width"] <= 600
    for control in page.locator("label").all():
        assert control.bounding_box()["height"] >= 44  # a finger's width
    if width == 390:
        sizes = page.evaluate(
            """() => { const svg = document.querySelector(".slider-figure svg");
            return parseFloat(getComputedStyle(svg).fontSize) * svg.clientWidth / 480 }"""
        )
        assert sizes >= 11


def test_words_inside_stay_in_the_picture(show):
    page = show(turning())
    outside = page.evaluate(
        """() => { const svg = document.querySelector(".slider-figure svg"),
        frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("text")].filter(t => { const r = t.getBoundingClientRect();
            return r.left < frame.left || r.right > frame.right + 1 || r.bottom > frame.bottom })
            .map(t => t.textContent) }"""
    )
    assert outside == []


def test_controls_have_names(show):
    page = show(turning())
    assert page.get_by_role("slider", name="offset n − m", exact=True).count() == 1
    assert page.get_by_role("combobox", name="pair").count() == 1
    assert page.get_by_role("checkbox", name="draw the curve", exact=True).count() == 1
    assert page.get_by_role("group", name="A pair that turns").count() == 1
    assert page.get_by_role("img", name=expected(0)["picture"]).count() == 1
    assert page.get_by_role("status").inner_text() == expected(0)["readout"]


def test_authors_text_runs_nothing(show):
    nasty = (
        "</script><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
    )
    plane = Axes(x=(0, 10), y=(0, 10), x_label=nasty)
    figure = SliderFigure(
        name="nasty",
        title=nasty,
        controls=[Slider("a", nasty, [1, 2], nasty + "{}")],
        axes=plane,
        frame=lambda a: [plane.label(a, a, f"{nasty}{a}")],
        alt=lambda a: f"{nasty}{a}",
        readout=lambda a: f"{nasty}{a}",
    )
    page = show(figure)
    page.locator("input").press("End")
    assert page.locator("output").inner_text() == nasty + "2"
    assert page.title() == "t"


# --- the head browser

OBSERVED = made_up()  # 2 texts, 3 layers of 2 heads, 5 tokens


def browsing(**options):
    return HeadBrowser(OBSERVED, name="heads", title="Look at a head", **options)


def controls(page):
    """By name: text, kind, rank, layer, head, query."""
    names = ("text", "kind", "rank", "layer", "head", "query")
    return dict(
        zip(names, page.locator(".slider-figure").locator("input, select").all(), strict=True)
    )


def expected_of_head(text, kind, layer, head, m):
    """What is written for one choice, from the weights themselves."""
    tokens = [token.strip() for token in OBSERVED.tokens[text]]
    row = OBSERVED.percent[text, layer, head, m, : m + 1].tolist()
    keys = [f"{n} “{tokens[n]}” {p}%" for n, p in enumerate(row)]
    most = [keys[n] for n in sorted(range(m + 1), key=lambda n: -row[n]) if row[n]][:4]
    measured = heads.scores(OBSERVED)[kind]
    rank = measured.flatten().argsort(descending=True).tolist().index(2 * layer + head)
    return {
        "sliders": [str(rank + 1), str(layer), str(head), str(m)],
        "head": f"Layer {layer}, head {head} gives {KINDS[kind]} "
        f"{int((100 * measured[layer, head]).round())}% of its weight on average.",
        "row": f"Query {m} “{tokens[m]}” attends to {', '.join(most)}.",
        "picture": f"query {m} “{tokens[m]}” attends to {', '.join(keys)}.",
        "numbers": [str(p) for p in row],
        "rows": tokens,
        "columns": tokens,
    }


def head_text(page):
    """The same from the page."""
    about, attends = page.locator("output").all_inner_texts()
    spoken = [
        each.get_attribute("aria-valuetext") for each in page.locator("input[type=range]").all()
    ]
    assert spoken == page.locator("label b").all_inner_texts()
    picture = page.locator("svg").get_attribute("aria-label")
    numbers = page.locator("svg [data-group=numbers] text").all_text_contents()
    return {
        "sliders": spoken,
        "head": about.split(" Equal")[0],
        "row": attends,
        "picture": "query" + picture.split(", query")[1],
        "numbers": [number for number in numbers if number],
        "rows": page.locator("svg [data-group=queries] text").all_text_contents(),
        "columns": page.locator("svg [data-group=keys] text").all_text_contents(),
    }


def test_heads_are_chosen_by_keyboard(show):
    page = show(browsing())
    assert not page.locator(".note").is_visible()
    ranked = heads.scores(OBSERVED)[0].flatten().argsort(descending=True).tolist()
    assert head_text(page) == expected_of_head(0, 0, *divmod(ranked[0], 2), 4)
    page.keyboard.press("Tab")  # text
    page.keyboard.press("ArrowDown")
    assert head_text(page) == expected_of_head(1, 0, *divmod(ranked[0], 2), 4)
    page.keyboard.press("Tab")  # measure: the head stays, its rank is another one
    page.keyboard.press("End")
    assert head_text(page) == expected_of_head(1, 4, *divmod(ranked[0], 2), 4)
    ranked = heads.scores(OBSERVED)[4].flatten().argsort(descending=True).tolist()
    page.keyboard.press("Tab")  # rank
    page.keyboard.press("Home")
    for chosen in ranked:
        assert head_text(page) == expected_of_head(1, 4, *divmod(chosen, 2), 4)
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")  # layer
    page.keyboard.press("Home")
    page.keyboard.press("Tab")  # head
    page.keyboard.press("Home")
    assert head_text(page) == expected_of_head(1, 4, 0, 0, 4)
    page.keyboard.press("End")
    page.keyboard.press("Tab")  # query
    for m in (3, 2, 1, 0):
        page.keyboard.press("ArrowLeft")
        assert head_text(page) == expected_of_head(1, 4, 0, 1, m)


@pytest.mark.parametrize("touch", [False, True], ids=["pointer", "touch"])
def test_heads_and_rows_are_chosen_by_pointer_and_touch(show, touch):
    page = show(browsing(), has_touch=touch)
    point = "tap" if touch else "click"
    for at in (5, 0, 3):
        getattr(page.locator("svg [data-group=map] rect").nth(at), point)()
        assert head_text(page) == expected_of_head(0, 0, *divmod(at, 2), 4)
    for cell, m in [(0, 0), (1, 1), (2, 1), (3, 2), (9, 3), (14, 4)]:
        getattr(
            page.locator("svg [data-group=weights] rect").nth(cell), "tap" if touch else "hover"
        )()
        assert head_text(page) == expected_of_head(0, 0, 1, 1, m)
    for words in ("queries", "keys"):
        for m in (2, 3):
            getattr(
                page.locator(f"svg [data-group={words}] text").nth(m), "tap" if touch else "hover"
            )()
            assert head_text(page) == expected_of_head(0, 0, 1, 1, m)


FIRST_FRAMES = [(text, kind) for kind in KINDS for text in range(2)]


@pytest.mark.parametrize(("text", "kind"), some_now(FIRST_FRAMES, FIRST_FRAMES[1::3]))
def test_the_script_draws_what_the_first_frame_would(text, kind, show):
    """Two ways to one picture: chosen by the script, and written by Python as what comes first."""
    page = show(browsing())
    now = controls(page)
    now["text"].select_option(str(text))
    now["kind"].select_option(kind)
    now["query"].press("End")
    now["rank"].press("Home")
    other = show(browsing(text=text, kind=kind), java_script_enabled=False)
    drawn = [each.locator("svg").evaluate("e => e.outerHTML") for each in (page, other)]
    assert drawn[0] == drawn[1]
    assert head_text(page) == head_text(other)
    words = [each.locator("output").all_inner_texts() for each in (page, other)]
    assert words[0] == words[1]


def test_frames_mark_the_keys_that_the_measure_counts(show):
    page = show(browsing())
    for kind, counted in enumerate(heads.targets(OBSERVED.tokens[1])):
        controls(page)["text"].select_option("1")
        controls(page)["kind"].select_option(str(kind))
        framed = page.locator("svg [data-group=weights] rect").evaluate_all(
            "cells => cells.map(cell => getComputedStyle(cell).strokeWidth)"
        )
        wanted = [bool(counted[m, n]) for m in range(5) for n in range(m + 1)]
        assert [each == "2px" for each in framed] == wanted


def test_the_chosen_head_and_row_are_framed(show):
    page = show(browsing())
    now = controls(page)
    now["layer"].press("End")
    now["head"].press("End")
    now["query"].press("Home")
    now["query"].press("ArrowRight")
    place = "e => { const r = e.getBBox(); return [r.x, r.y, r.width, r.height] }"
    chosen = page.locator("svg [data-group=chosen] rect").evaluate(place)
    assert chosen == page.locator("svg [data-group=map] rect").nth(5).evaluate(place)
    row = page.locator("svg [data-group=row] rect").evaluate(place)
    first, last = (
        page.locator("svg [data-group=weights] rect").nth(i).evaluate(place) for i in (1, 2)
    )
    assert row[:2] == first[:2]
    assert row[0] + row[2] == pytest.approx(last[0] + last[2], abs=0.1)
    assert row[3] == first[3]
    for number in page.locator("svg [data-group=numbers] text").all()[:2]:
        _, top, _, height = number.evaluate(place)
        assert row[1] <= top + height / 2 <= row[1] + row[3]


def test_two_head_browsers_move_alone(show):
    page = show(browsing(), browsing())
    page.locator("input").nth(5).press("Home")  # of the second: its layer
    texts = page.locator("output").all_inner_texts()
    assert texts[0] != texts[2]
    assert texts[2].startswith("Layer 0")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_head_browser_follows_the_theme(show, theme):
    page = show(browsing(), theme=f' data-theme="{theme}"', color_scheme="light")
    assert colors(page) == (DARK if theme == "dark" else LIGHT)
    cell = page.locator("svg [data-group=map] rect").first.evaluate("e => getComputedStyle(e).fill")
    assert cell == ("rgb(51, 144, 204)" if theme == "dark" else "rgb(0, 114, 178)")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_head_browser_fits(show, width):
    observed = heads.Observed.from_record(results.load("heads")["texts"])
    figure = HeadBrowser(observed, name="heads", title="Look at a head")
    page = show(figure, viewport={"width": width, "height": 844})
    for _ in range(2):
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for control in page.locator("label").all():
            assert control.bounding_box()["height"] >= 44
        outside = page.evaluate(
            """() => { const svg = document.querySelector("svg"), box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll("text"), ...document.querySelectorAll("b, select")]
                .filter(t => { const r = t.getBoundingClientRect(), inside = svg.contains(t);
                    return r.left < (inside ? box.left : 0) || r.bottom > box.bottom && inside
                        || r.right > (inside ? box.right : innerWidth) + 1 })
                .map(t => t.textContent) }"""
        )
        assert outside == []
        controls(page)["text"].select_option("1")
    beside = page.locator("svg").bounding_box()["x"] + page.locator("svg").bounding_box()["width"]
    assert (controls(page)["text"].bounding_box()["x"] > beside) == (width == 1280)
    if width == 390:
        size = page.evaluate(
            """() => { const svg = document.querySelector("svg");
            return parseFloat(getComputedStyle(svg).fontSize) * svg.clientWidth / 480 }"""
        )
        assert size >= 11
