"""lib.interactive: the HTML of a slider figure, without a browser (tests/browser has one)."""

import json
import re
from html.parser import HTMLParser
from itertools import product

import pytest
import torch

from lib import interactive
from lib.figures import COLORS, set_words
from lib.interactive import Axes, Checkbox, Select, Slider, SliderFigure
from lib.svg import DEEPEST
from tests.test_figures import luminance

axes = Axes(x=(0, 10), y=(-10, 10), box=(0, 0, 126, 124))


def make(**changes):
    """A figure of 3 × 2 × 2 frames; ``changes`` replace its arguments."""

    def frame(offset, scheme, masked):
        return [
            axes.line([0, offset], [0, -offset if masked else offset]),  # depends on two
            axes.label(5, 5, scheme),  # on one
            axes.points([1], [1]),  # on none
        ]

    arguments = {
        "name": "example",
        "title": "An example",
        "controls": [
            Slider("offset", "offset", [1, 2, 4], "{} tokens", start=2),
            Select("scheme", "scheme", ["rotary", "linear"]),
            Checkbox("masked", "causal mask"),
        ],
        "axes": axes,
        "frame": frame,
        "alt": "Offset {offset} under {scheme}.",
        "readout": "offset {offset}",
    }
    return SliderFigure(**{**arguments, **changes})


def table(figure):
    """What the script gets."""
    data = re.search(r"document\.currentScript,(.*)\)</script>", figure.html, re.DOTALL)[1]
    return json.loads(data)


class Reader(HTMLParser):
    """The elements of a piece of HTML: (tag, attributes), and a check that the tags match."""

    VOID = ("input",)

    def __init__(self, html):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def shown(figure, *places):
    """What the table says at these places, as the script computes it: {(part, attribute): value}"""
    return {
        (part, name): values[sum(s * p for s, p in zip(strides, places, strict=True))]
        for part, name, strides, values in table(figure)
    }


def test_every_frame_is_in_the_table():
    figure = make()
    for i, j, k in product(range(3), range(2), range(2)):
        offset, scheme, masked = (1, 2, 4)[i], ("rotary", "linear")[j], bool(k)
        line = axes.line([0, offset], [0, -offset if masked else offset])
        assert shown(figure, i, j, k) == {
            (0, "aria-label"): f"Offset {offset} under {scheme}.",
            (1, "d"): line.attributes["d"],
            (2, ""): scheme,
            (3, "aria-valuetext"): f"{offset} tokens",
            (4, ""): f"{offset} tokens",
            (5, ""): f"offset {offset}",
        }
    assert figure.n_frames == 12


def test_the_table_keeps_what_each_value_depends_on():
    stored = {(part, name): (strides, len(values)) for part, name, strides, values in table(make())}
    assert stored[0, "aria-label"] == ([2, 1, 0], 6)
    assert stored[1, "d"] == ([2, 0, 1], 6)
    assert stored[2, ""] == ([0, 1, 0], 2)
    assert stored[4, ""] == ([1, 0, 0], 3)


def test_parts_are_counted_in_the_order_of_the_page():
    parts = [tag for tag, attributes in Reader(make().html).elements if "data-part" in attributes]
    assert parts == ["svg", "path", "text", "input", "b", "output"]


def test_without_a_script_it_shows_the_start_and_dead_controls():
    figure = make()
    page = Reader(figure.html)
    assert page.all("svg")[0]["aria-label"] == "Offset 2 under rotary."
    assert page.all("svg")[0]["role"] == "img"
    start = axes.line([0, 2], [0, 2]).attributes["d"]
    assert start in [path.get("d") for path in page.all("path")]
    assert ">2 tokens</b>" in figure.html
    assert ">offset 2</output>" in figure.html
    assert 'value="1"' in figure.html
    assert all("disabled" in control for control in page.all("input") + page.all("select"))
    (note,) = [each for each in page.all("p") if each.get("class") == "note"]
    assert "hidden" not in note
    assert interactive.NOTE in figure.html


def test_controls():
    page = Reader(make().html)
    slider, box = page.all("input")
    assert (slider["type"], slider["min"], slider["max"]) == ("range", "0", "2")
    assert slider["aria-valuetext"] == "2 tokens"
    # On the control itself: seen in JupyterLab 4.6 to lose the arrow keys when it stands around it.
    for control in (slider, box, *page.all("select")):
        assert control["data-lm-suppress-shortcuts"] == "true"
    assert box["type"] == "checkbox"
    assert "checked" not in box
    assert [each["value"] for each in page.all("option")] == ["0", "1"]
    assert len(page.all("label")) == 3  # each control is inside its label: no ids are needed
    ticked = make(
        controls=[Checkbox("masked", "mask", start=True)],
        frame=lambda masked: [],
        alt="{masked}",
        readout=None,
    )
    assert "checked" in Reader(ticked.html).all("input")[0]


def test_ids():
    assert make(name="one").html != make(name="two").html
    ids = re.findall(r'\bid="([^"]*)"', make(name="one").html)
    assert ids == ["figure-one"]


def test_same_input_same_output():
    assert make().html == make().html


def test_tensors_make_frames():
    torch.manual_seed(0)
    weights = torch.rand(2, 2, 2)
    grid = Axes(x=(-0.5, 1.5), y=(1.5, -0.5))
    figure = make(
        controls=[Slider("head", "head", range(2))],
        axes=grid,
        frame=lambda head: [grid.cells(weights[head])],
        alt="Head {head}.",
        readout=None,
    )
    numbers = [f"{value:.2f}" for value in weights[1].flatten().tolist()]
    assert [v for (_, name), v in shown(figure, 1).items() if name == ""][:4] == numbers


def test_alt_and_readout_may_be_functions():
    def say(offset, scheme, masked):
        return f"{scheme} at {-offset}"

    figure = make(alt=say, readout=say)
    assert figure.alt == "rotary at −2"
    assert shown(figure, 2, 1, 0)[0, "aria-label"] == "linear at −4"
    assert repr(figure) == "<SliderFigure example: 12 frames. rotary at −2>"


NASTY = "</script><script>x()</script>\"'><img src=x onerror=y()>&amp;<!--\u2028"


def test_nothing_of_the_author_becomes_markup():
    grid = Axes(x=(0, 10), y=(-10, 10), x_label=NASTY, y_label=NASTY, x_ticks={5: NASTY})
    figure = make(
        title=NASTY,
        axes=grid,
        controls=[
            Slider("a", NASTY, [1, 2], NASTY + "{}"),
            Select("b", NASTY, [NASTY, "plain"]),
            Checkbox("c", NASTY),
        ],
        frame=lambda a, b, c: [grid.label(a, a, f"{b}{c}{NASTY}")],
        alt=lambda a, b, c: f"{a}{b}{NASTY}",
        readout=lambda a, b, c: f"{a}{b}{NASTY}",
    )
    page = Reader(figure.html)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert figure.html.count("</script>") == 1
    assert page.all("svg")[0]["aria-label"] == f"1{NASTY}{NASTY}"  # escaped once, not twice
    assert shown(figure, 1, 0, 0)[0, "aria-label"] == f"2{NASTY}{NASTY}"


def test_words_of_another_language():
    set_words({"offset": "偏移", "{} tokens": "{} 个词元", "rotary": "旋转", "An example": "示例",
               "Offset {offset} under {scheme}.": "{scheme}:偏移 {offset}。",
               interactive.NOTE: "需要 JavaScript。"})  # fmt: skip
    try:
        html = make().html
    finally:
        set_words({})
    for words in ("偏移", "2 个词元", "旋转", "示例", "rotary:偏移 2。", "需要 JavaScript。"):
        assert words in html
    for words in ("tokens", "An example", interactive.NOTE):
        assert words not in html


def test_it_asks_nobody_for_anything():
    html = make().html
    assert not re.search(r"https?:|//[a-z]|src=|href=|url\(|@import|fetch|eval|innerHTML", html)


PALETTES = re.findall(r"--page:.*?color-scheme:(?:light|dark)", interactive.STYLE)
LIGHT, DARK, *_ = PALETTES


def test_series_have_the_colors_of_the_figures_and_a_dash_each():
    for k, color in enumerate(COLORS[:2]):  # another one on a dark page
        assert f"--c{k}:{color};" in LIGHT
        assert f".s{k}{{--c:var(--c{k});" in interactive.STYLE
    for k, color in enumerate(COLORS[2:], start=2):
        assert f".s{k}{{--c:{color};" in interactive.STYLE
    assert len(set(re.findall(r"--d:[^}]+", interactive.STYLE))) == len(COLORS)
    assert [LIGHT, DARK] == PALETTES[2:]  # by the page's theme as by the system's


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("series", [0, 1])
def test_numbers_are_readable_on_the_deepest_cell(theme, series):
    page, ink, *colors = re.findall(r"#\w+", theme)
    page = page if len(page) == 7 else "#" + "".join(2 * digit for digit in page[1:])
    color = colors[series]
    mixed = "#"
    for k in (1, 3, 5):
        over, under = int(color[k : k + 2], 16), int(page[k : k + 2], 16)
        mixed += f"{round(DEEPEST * over + (1 - DEEPEST) * under):02x}"
    low, high = sorted((luminance(mixed), luminance(ink)))
    assert (high + 0.05) / (low + 0.05) >= 4.5
    low, high = sorted((luminance(color), luminance(page)))  # a thin line of that colour
    assert (high + 0.05) / (low + 0.05) >= (5 if theme == DARK else 3)


def test_weight():
    # A curve of 60 points that turns with a slider of 33 places, and a number: 24 kB at most.
    wide = Axes(x=(0, 60), y=(-1, 1))
    xs = torch.arange(60)
    figure = make(
        controls=[Slider("k", "k", range(33))],
        axes=wide,
        frame=lambda k: [wide.line(xs, torch.sin(xs * k / 60)), wide.label(30, 0, f"{k / 60:.2f}")],
        alt="Frequency {k}.",
        readout=None,
    )
    assert len(figure.html.encode()) < 24_000
    still = make(controls=[Slider("k", "k", [0, 1])], frame=lambda k: [], alt="{k}", readout=None)
    assert len(still.html.encode()) < 5_500  # what every figure costs: style, script, outline


def stray_marks(offset, scheme, masked):
    marks = [axes.line([0, 1], [0, 1])]
    return marks + [axes.label(1, 1, "late")] * (offset == 4)


def other_marks(offset, scheme, masked):
    return [axes.label(1, 1, "now") if masked else axes.points([1], [1])]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: make(name="Two Words"), "'Two Words' must match"),
        (lambda: make(name="a\n"), r"'a\\n' must match"),
        (lambda: make(controls=[]), r"different names, got \[\]"),
        (lambda: make(axes=[]), r"needs axes to draw in, got none: \[\]"),
        (
            lambda: make(controls=[Checkbox("a", "x"), Slider("a", "y", [1, 2])]),
            r"different names, got \['a', 'a'\]",
        ),
        (lambda: make(frame=stray_marks), r"'offset': 1, .* has 1 elements and .*'offset': 4.* 2"),
        (lambda: make(frame=other_marks), r"'masked': False.* 1 elements and .*'masked': True.* 1"),
        (
            lambda: make(controls=[Slider(name, name, range(13)) for name in "abc"]),
            "has 2197 frames, more than 2000",
        ),
        (lambda: make(max_bytes=100), r"weighs \d+ bytes, more than max_bytes=100"),
        (lambda: Slider("no good", "offset", [1, 2]), "'offset' needs a name .* got 'no good'"),
        (lambda: Slider("a", "b", [1]), r"needs 2 values or more, got 1: \(1,\)"),
        (lambda: Slider("a", "b", [1, 2], start=3), r"start at 3: its values are \(1, 2\)"),
    ],
)
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call()
