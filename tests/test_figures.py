"""lib.figures: style, heat maps and the table of words."""

import io
import subprocess
import sys

import matplotlib as mpl
import nbformat
import numpy as np
import pytest
import torch

from lib import figures

mpl.use("svg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def _as_it_was():
    with mpl.rc_context():
        yield
    plt.close("all")
    figures.set_words({})


def luminance(color):
    """Relative luminance as WCAG 2.2 defines it, written without lib."""
    total = 0.0
    for part, share in zip(mpl.colors.to_rgb(color), (0.2126, 0.7152, 0.0722), strict=True):
        total += share * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
    return total


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def inverted(color):
    """The stylesheet's invert(.93) hue-rotate(180deg), after the filter effects specification."""
    turn = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
    colors = np.array(mpl.colors.to_rgb(color))
    return turn @ np.clip(colors * (1 - 2 * 0.93) + 0.93, 0, 1)


def svg(figure):
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def written(ax):
    return [each.get_text() for each in ax.texts]


def test_importing_changes_nothing():
    code = (
        "import sys, lib, lib.figures, lib.interactive; assert 'matplotlib' not in sys.modules;"
        "import matplotlib as m; d = dict(m.rcParams); import importlib;"
        "importlib.reload(lib.figures); assert d == dict(m.rcParams);"
        "lib.figures.use_style(); assert d != dict(m.rcParams)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_curves_differ_in_more_than_color():
    sixteen = [figures.series(k) for k in range(16)]
    assert len({tuple(each.values()) for each in sixteen}) == 16
    marked = [figures.series(k, marker=True) for k in range(16)]
    for color in figures.COLORS:  # two curves of one colour have other lines and other markers
        same = [each for each in marked if each["color"] == color]
        assert len({each["linestyle"] for each in same}) == len(same) == 4
        assert len({each["marker"] for each in same}) == 4
    first = marked[:4]  # and the first four would still differ in black and white
    assert len({each["linestyle"] for each in first}) == 4


def test_style_gives_successive_curves_their_series():
    figures.use_style()
    lines = plt.figure().add_subplot().plot(np.eye(8))
    got = [{"color": line.get_color(), "linestyle": line.get_linestyle()} for line in lines]
    assert got == [figures.series(k) for k in range(8)]


def test_colors_stand_out_on_light_and_dark_pages():
    for color in figures.COLORS:
        assert contrast(color, "white") >= 2.95  # the reddish purple rounds to 3
        assert contrast(color, "#14181e") >= 3
        assert contrast(inverted(color), inverted("white")) >= 3


def test_same_numbers_same_bytes():
    drawn = []
    for _ in range(2):
        figures.use_style()
        ax = figures.heatmap([[1.0, -2.0]], color_label="score")
        ax.figure.add_subplot().plot([1, 2], clip_on=True)
        drawn.append(svg(ax.figure))
    assert drawn[0] == drawn[1]
    assert "<dc:date>" not in drawn[0]
    assert "<text" not in drawn[0]  # letters are outlines: no font of the reader's is needed


def test_style_is_small_on_a_phone():
    figures.use_style()
    fig, ax = plt.subplots()
    for k in range(4):
        ax.plot(np.sin(np.arange(200) / (k + 5)), label=str(k))
    ax.legend()
    assert len(svg(fig)) < 60_000
    points_per_pixel = 358 / (fig.get_size_inches()[0] * 96)  # at 390 pixels less the margins
    assert mpl.rcParams["font.size"] * 96 / 72 * points_per_pixel >= 10


@pytest.mark.parametrize("kind", ["scores", "weights"])
def test_numbers_are_readable_on_every_color(kind):
    values = np.linspace(-1 if kind == "scores" else 0, 1, 12 * 12).reshape(12, 12)
    values[3, 3] = np.nan
    ax = figures.heatmap(values, kind=kind)
    image = ax.images[0]
    colors = image.to_rgba(image.get_array()).reshape(-1, 4)
    assert len(ax.texts) == len(colors)
    for color, number in zip(colors, ax.texts, strict=True):
        assert contrast(color[:3], number.get_color()) >= 4.5


def test_scores_are_white_at_zero_and_weights_begin_there():
    scores = figures.heatmap([[0.0, -3.0, 1.0]]).images[0]
    assert scores.get_clim() == (-3, 3)
    colors = scores.to_rgba(scores.get_array())[0]
    np.testing.assert_allclose(colors[0, :3], 1, atol=0.01)
    assert colors[1, 0] > colors[1, 2]  # below zero: orange, more red than blue
    assert colors[2, 2] > colors[2, 0]  # above: blue
    weights = figures.heatmap([[0.0, 0.5]], kind="weights").images[0]
    assert weights.get_clim() == (0, 0.5)
    np.testing.assert_allclose(weights.to_rgba(weights.get_array())[0, 0, :3], 1)


def test_cells_hold_their_numbers():
    matrix = torch.tensor([[1.234, -torch.inf], [-0.5, 0.0]], requires_grad=True)
    ax = figures.heatmap(matrix, value_format="{:.1f}")
    assert written(ax) == ["1.2", "−∞", "−0.5", "0.0"]
    assert [each.get_position() for each in ax.texts] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert written(figures.heatmap(torch.zeros(2, 2), value_format=None)) == []
    assert written(figures.heatmap(torch.tensor([[0.5, 1.0]]).bfloat16())) == ["0.50", "1.00"]


def test_nothing_finite():
    assert written(figures.heatmap(torch.full((1, 2), -torch.inf))) == ["−∞", "−∞"]


def test_attention_map():
    ax = figures.attention_map(torch.tensor([[1.0, 0.0], [0.25, 0.75]]), ["The", "cat"])
    assert ax.get_xlabel() == "key, position n"
    assert ax.get_ylabel() == "query, position m"
    assert [each.get_text() for each in ax.get_xticklabels()] == ["The", "cat"]
    assert [each.get_text() for each in ax.get_yticklabels()] == ["The", "cat"]
    assert ax.images[0].get_clim() == (0, 1)
    crossed = figures.attention_map(torch.ones(1, 2) / 2, ["eins"], ["one", "two"], limit=0.5)
    assert [each.get_text() for each in crossed.get_xticklabels()] == ["one", "two"]
    assert crossed.images[0].get_clim() == (0, 0.5)


def test_draws_where_it_is_told():
    _, (left, right) = plt.subplots(1, 2)
    assert figures.heatmap([[1.0]], ax=right) is right
    assert not left.images


def test_words_of_another_language():
    figures.set_words({"key, position n": "键,位置 n", "weight": "权重"})
    ax = figures.attention_map([[1.0]], ["The"], color_label="weight")
    assert ax.get_xlabel() == "键,位置 n"
    assert ax.get_ylabel() == "query, position m"  # not in the table
    assert ax.figure.axes[1].get_ylabel() == "权重"
    figures.set_words({}, fonts=["DejaVu Serif"])
    assert figures.text("weight") == "weight"
    figures.use_style()
    assert mpl.rcParams["font.family"] == ["DejaVu Serif", "DejaVu Sans"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: figures.use_style(image_format="gif"), "got 'gif'"),
        (lambda: figures.series(16), "0 to 15, got 16"),
        (lambda: figures.heatmap([1.0, 2.0]), r"got \(2,\)"),
        (lambda: figures.heatmap(np.zeros((0, 2))), r"got \(0, 2\)"),
        (lambda: figures.heatmap([[1.0]], kind="heat"), "'weights', got 'heat'"),
        (lambda: figures.heatmap([[1.0]], row_labels="ab"), "2 row labels for 1 rows"),
        (lambda: figures.heatmap([[1.0]], column_labels="ab"), "2 column labels for 1 columns"),
        (lambda: figures.heatmap([[-0.5]], kind="weights"), "cannot be negative, got -0.5"),
        (lambda: figures.heatmap([[-3.0]], limit=2), "is 3, beyond limit=2"),
        (lambda: figures.heatmap(np.zeros((2, 13))), "13 columns could not be read, 12"),
    ],
)
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("order", ["style first", "pyplot first"])
def test_a_notebook_shows_svg_without_a_date(order):
    from nbclient import NotebookClient

    style = "from lib import figures\nfigures.use_style()"
    pyplot = "import matplotlib.pyplot as plt\nplt.plot([0])\nplt.close()"
    cells = [style, pyplot] if order == "style first" else [pyplot, style]
    cells.append("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    (shown,) = notebook.cells[-1].outputs
    assert "image/svg+xml" in shown["data"]
    assert "image/png" not in shown["data"]
    assert "<dc:date>" not in shown["data"]["image/svg+xml"]
    assert 'width="374.4pt"' in shown["data"]["image/svg+xml"]  # 5.2 inches, nothing cut off


def test_the_flow_marks_the_parts_that_are_asked_for_and_no_other():
    ax = figures.attention_flow("turned", "cache")
    marked = {word.get_text() for word in ax.texts if word.get_weight() == "bold"}
    assert marked == {figures.FLOW["turned"][2], figures.FLOW["cache"][2]}
    assert sum(box.get_linewidth() == 3 for box in ax.patches) == 2
    assert len(ax.patches) == len(figures.FLOW)


def test_the_flows_boxes_do_not_overlap_and_its_arrows_are_between_neighbours():
    spans = [(y, x - width / 2, x + width / 2) for (x, y), width, *_ in figures.FLOW.values()]
    for y, left, right in spans:
        beside = [span for span in spans if span[0] == y and span[1:] != (left, right)]
        assert all(other[2] < left or right < other[1] for other in beside)
    for x, start, end in figures._ARROWS:
        for name in (start, end):
            (middle, _), width, *_ = figures.FLOW[name]
            assert abs(x - middle) < width / 2
        top, bottom = (figures.FLOW[name][0][1] for name in (start, end))
        crossed = [span for span in spans if bottom < span[0] < top]
        assert not any(left <= x <= right for _, left, right in crossed)


def test_the_flow_has_nothing_marked_unless_asked():
    ax = figures.attention_flow()
    assert [word.get_text() for word in ax.texts if word.get_text()] == [
        words for _, _, words, _ in figures.FLOW.values()
    ]
    assert {word.get_weight() for word in ax.texts if word.get_text()} == {"normal"}
    assert {box.get_linewidth() for box in ax.patches} == {1}
    dotted = [box.get_linestyle() == ":" for box in ax.patches]
    assert dotted == [not always for *_, always in figures.FLOW.values()]


def test_the_flow_writes_other_words_in_the_boxes_that_it_marks():
    ax = figures.attention_flow("turned", words={"softmax": "softmax with a sink"})
    written = [word.get_text() for word in ax.texts if word.get_text()]
    usual = [words for _, _, words, _ in figures.FLOW.values()]
    changed = {old: new for old, new in zip(usual, written, strict=True) if old != new}
    assert changed == {figures.FLOW["softmax"][2]: "softmax with a sink"}
    marked = {word.get_text() for word in ax.texts if word.get_weight() == "bold"}
    assert marked == {figures.FLOW["turned"][2], "softmax with a sink"}


def too_wide(ax) -> list[str]:
    """The words of a flow that are wider than their box."""
    ax.figure.draw_without_rendering()
    words = [word for word in ax.texts if word.get_text()]
    return [
        word.get_text()
        for word, box in zip(words, ax.patches, strict=True)
        if word.get_window_extent().width > box.get_window_extent().width
    ]


def test_the_flows_words_fit_into_their_boxes_also_in_bold():
    figures.use_style()
    assert not too_wide(figures.attention_flow(*figures.FLOW))
    long = "the key, normalized"
    assert too_wide(figures.attention_flow(words={"key": long})) == [long]


def test_the_flow_refuses_an_unknown_part():
    with pytest.raises(ValueError, match="no part \\['rotation'\\]"):
        figures.attention_flow("mask", "rotation")
    with pytest.raises(ValueError, match="no part \\['gate'\\]"):
        figures.attention_flow("mask", words={"gate": "gate"})
