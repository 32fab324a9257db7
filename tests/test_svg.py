"""lib.svg: from data to SVG elements."""

import math
import re

import numpy as np
import pytest
import torch

from lib.figures import set_words
from lib.svg import DEEPEST, SHAPES, Axes, minus

# The inner rectangle of BOX without labels is 100 wide and 100 high, and starts at (10, 14).
BOX = (0, 0, 126, 124)
axes = Axes(x=(0, 10), y=(0, 1), box=BOX)


def numbers(path):
    return [float(n) for n in re.findall(r"-?[\d.]+", path)]


def corners(path):
    """Absolute places of a path that :meth:`Axes.line` wrote."""
    values = np.array(numbers(path)).reshape(-1, 2)
    return values.cumsum(axis=0)


def test_line_by_hand():
    line = axes.line([0, 5, 10], [0, 1, 0], series=2)
    assert line.tag == "path"
    assert line.attributes["class"] == "line s2"
    assert line.attributes["d"] == "M10 114l50-100 50 100"


def test_steps_of_a_long_line_do_not_drift():
    # 100/3 is no number of tenths: steps rounded one by one would end 3 units off.
    xs = [10 * k / 299 for k in range(300)]
    ys = [0.5 + 0.5 * math.sin(7 * x) for x in xs]
    places = corners(axes.line(xs, ys).attributes["d"])
    wanted = np.array([[10 + 10 * x, 114 - 100 * y] for x, y in zip(xs, ys, strict=True)])
    assert np.abs(places - wanted).max() < 0.051


def test_no_points_draw_nothing():
    assert axes.line([], []).attributes["d"] == ""
    assert axes.points([], []).attributes["d"] == ""
    assert axes.bars([], []).attributes["d"] == ""


def test_tensors_and_arrays_are_data():
    wanted = axes.line([0, 5], [0, 1])
    assert axes.line(torch.tensor([0, 5]), torch.tensor([0.0, 1.0])) == wanted
    assert axes.line(np.array([0, 5]), np.array([0.0, 1.0])) == wanted


def test_ranges_may_run_backwards():
    backwards = Axes(x=(10, 0), y=(1, 0), box=BOX)
    assert backwards.line([0, 10], [0, 1]).attributes["d"] == "M110 14l-100 100"


def test_equal_units():
    wide = Axes(x=(0, 4), y=(0, 1), equal=True, box=BOX)
    assert wide.inner == (10, 14, 100, 25)
    tall = Axes(x=(0, 1), y=(0, 4), equal=True, box=BOX)
    assert tall.inner == (10 + 37.5, 14, 25, 100)


def test_bars_stand_on_their_base():
    assert axes.bars([5], [0.5], width=2).attributes["d"] == "M50 114V64H70V114z"
    assert axes.bars([5], [0.5], width=2, base=1).attributes["d"] == "M50 14V64H70V14z"


def test_arrow_points_at_its_end():
    shaft, head = axes.arrow(0, 0, 10, 0)
    assert corners(shaft.attributes["d"]).tolist() == [[10, 114], [97, 114]]
    places = corners(head.attributes["d"])
    assert places[1].tolist() == [110, 114]  # the tip
    np.testing.assert_allclose(places[[0, 2]].mean(axis=0), [97, 114], atol=0.051)
    nothing = axes.arrow(5, 0.5, 5, 0.5)
    assert nothing[1].attributes["d"] == ""


def test_points_differ_in_shape():
    drawn = [axes.points([5], [0.5], series=k).attributes for k in range(4)]
    assert len({each["d"] for each in drawn}) == len(set(SHAPES)) == 4
    assert [each["class"] for each in drawn] == [f"fill s{k}" for k in range(4)]
    assert all(each["d"].startswith("M60 64m") for each in drawn)


def test_cells_by_hand():
    grid = Axes(x=(-0.5, 1.5), y=(1.5, -0.5), box=BOX)
    drawn = grid.cells(torch.tensor([[0.5, -1.0], [-math.inf, math.nan]]), limit=1)
    rects = [each for each in drawn if each.tag == "rect"]
    assert [(r.attributes["x"], r.attributes["y"]) for r in rects] == [
        ("10", "14"), ("60", "14"), ("10", "64"), ("60", "64"),
    ]  # fmt: skip
    assert {(r.attributes["width"], r.attributes["height"]) for r in rects} == {("50", "50")}
    assert [r.attributes["fill-opacity"] for r in rects] == [DEEPEST / 2, DEEPEST, 0, 0]
    assert [r.attributes["class"] for r in rects][:2] == ["cell s0", "cell s1"]
    assert [e.text for e in drawn if e.tag == "text"] == ["0.50", "−1.00", "−∞", ""]
    assert all(e.tag == "rect" for e in grid.cells([[0, 0], [1, 1]], value_format=None))


def test_words_are_translated():
    set_words({"weight": "权重", "far": "远", "here": "这里"})
    try:
        translated = Axes(x=(0, 1), y=(0, 1), x_label="weight", x_ticks={1: "far"})
        texts = [element.text for element in translated.outline()]
        assert "权重" in texts
        assert "远" in texts
        assert translated.label(0.5, 0.5, "here").text == "这里"
    finally:
        set_words({})


def test_outline_holds_ticks_and_labels():
    framed = Axes(x=(-2, 2), y=(0, 1), x_label="a", y_label="b", x_ticks=[-2, 0.5], y_ticks=[1])
    texts = [element.text for element in framed.outline() if element.tag == "text"]
    assert sorted(texts) == sorted(["−2", "0.5", "1", "a", "b"])
    left, top, width, height = framed.inner
    assert (left + width, top + height) < (480, 300 - 40)  # room for ticks and label


def test_a_limit_may_be_a_tensor_and_all_may_be_zero():
    place = Axes(x=(-0.5, 1.5), y=(0.5, -0.5))
    matrix = torch.tensor([[0.5, 2.0]])
    assert place.cells(matrix, limit=matrix.abs().max()) == place.cells(matrix, limit=2.0)
    nothing = torch.zeros(1, 2)
    cells = place.cells(nothing, limit=nothing.abs().max(), value_format=None)
    assert [cell.attributes["fill-opacity"] for cell in cells] == [0, 0]


def test_minus():
    assert minus("-1 and (-.5) to -∞") == "−1 and (−.5) to −∞"
    assert minus("pre-2 2-3 well-known a - b") == "pre-2 2-3 well-known a - b"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Axes(x=(1, 1), y=(0, 1)), "x axis needs two different ends, got 1 and 1"),
        (lambda: Axes(x=(0, 1), y=(0, 1), box=(0, 0, 20, 20)), r"need 26 × 24.*20, 20"),
        (lambda: axes.line([0, 11], [0, 1]), r"\(11, 1\) lies outside the axes x=\(0, 10\)"),
        (lambda: axes.points([1], [math.nan]), r"\(1, nan\) lies outside"),
        (lambda: axes.bars([0], [1]), r"\(-0.4, 0\) lies outside"),
        (lambda: axes.line([0, 1], [0]), "2 x values but 1 y values"),
        (lambda: axes.line([0], [0], series=4), "0 to 3, got 4"),
        (lambda: axes.points([0], [0], series=4), "0 to 3, got 4"),
        (
            lambda: Axes(x=(-0.5, 1.5), y=(0.5, -0.5)).cells([[0.5, 3]], limit=2),
            r"cell \(0, 1\) is 3, beyond limit=2",
        ),
        (
            lambda: Axes(x=(-0.5, 1.5), y=(0.5, -0.5)).cells([[0, 3]], limit=0),
            r"cell \(0, 1\) is 3, beyond limit=0",
        ),
        (
            lambda: Axes(x=(-0.5, 1.5), y=(1.5, -0.5)).cells([[0, 1], [1]]),
            r"equal lengths, got \[2, 1\]",
        ),
    ],
)
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call()
