r"""How the figures of the course look: colours that differ in line style too, heat maps, words.

Nothing happens until :func:`use_style` is called, and matplotlib is imported only then, so that
``import lib`` neither needs it nor waits for it.

Why the figures are as they are:

- **SVG**, with letters as outlines and no date in it: sharp at any size, the same bytes from the
  same numbers, and a few kB compressed. For many thousands of points use
  ``use_style(image_format="retina")``.
- **On white**: readable in any viewer. The book's dark pages invert them, except for heat maps,
  whose colours mean something (class ``no-invert``).
- **5.2 inches wide with letters of 11 points**: on a phone, where the page is 350 pixels wide,
  the letters are still 10 pixels high.
- **Okabe–Ito colours**, which keep a contrast of 3 on white and on dark pages, each with a line
  style of its own: colour is never the only difference (Okabe and Ito, *Color Universal Design*,
  2008).

Words that a figure draws pass through :func:`text`, so that another language needs one table.
"""

import sys
from collections.abc import Mapping, Sequence

import numpy as np

__all__ = [
    "COLORS",
    "FLOW",
    "LINE_STYLES",
    "MARKERS",
    "attention_flow",
    "attention_map",
    "heatmap",
    "series",
    "set_words",
    "text",
    "use_style",
]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
LINE_STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "D", "^")
WIDTH = 5.2  # inches
MOST_NUMBERED = 12  # columns, above which numbers in the cells could not be read on a phone
POSITIVE = ("#0072B2", "#003554")  # of a heat map, from the middle to the end
NEGATIVE = ("#6b2f00", "#D55E00")  # from the end to the middle
EMPTY = "#e8e8e8"  # a cell with no finite value

# The parts of attention_flow: middle and width of each box, words, and whether every model has it.
FLOW = {
    "tokens": ((2.0, 0), 4.0, "tokens", True),
    "embedding": ((2.0, -1), 4.0, "embedding", True),
    "position added": ((2.0, -2), 4.0, "+ vector of the position", False),
    "query": ((0.6, -3), 1.1, "query q", True),
    "key": ((2.0, -3), 1.1, "key k", True),
    "value": ((3.4, -3), 1.1, "value v", True),
    "turned": ((1.3, -4), 2.5, "changed by position", False),
    "cache": ((2.7, -5), 2.5, "+ cached keys, values", False),
    "scores": ((1.3, -6), 2.5, "scores  q · k / √d", True),
    "bias": ((1.3, -7), 2.5, "+ bias by distance", False),
    "mask": ((1.3, -8), 2.5, "mask", False),
    "softmax": ((1.3, -9), 2.5, "softmax: weights", True),
    "mixture": ((2.0, -10), 4.0, "weighted sum of the values", True),
    "output": ((2.0, -11), 4.0, "output", True),
}
_ARROWS = (  # where, from which part to which
    *((2.0, "tokens", "embedding"), (2.0, "embedding", "position added")),
    *((0.6, "position added", "query"), (0.6, "query", "turned"), (0.6, "turned", "scores")),
    *((2.0, "position added", "key"), (2.0, "key", "turned"), (2.0, "turned", "cache")),
    *((3.4, "position added", "value"), (3.4, "value", "cache"), (3.4, "cache", "mixture")),
    *((2.0, "cache", "scores"), (1.3, "scores", "bias"), (1.3, "bias", "mask")),
    *((1.3, "mask", "softmax"), (1.3, "softmax", "mixture"), (2.0, "mixture", "output")),
)

_words: dict[str, str] = {}
_fonts: list[str] = []


def set_words(table: Mapping[str, str], *, fonts: Sequence[str] = ()) -> None:
    """Draw ``table[words]`` in place of ``words`` from now on; other words stay English.

    Words with numbers in them are looked up before the numbers go in, braces and all, as in
    ``text("query {m}").format(m=3)``. An edition in another language calls this once, before a
    chapter runs and calls :func:`use_style`.

    Args:
        table: English words, each with what is drawn in their place; it replaces the table before.
        fonts: the font families that have the letters, the first choice first.
    """
    _words.clear()
    _words.update(table)
    _fonts[:] = fonts


def text(words: str) -> str:
    """The words to draw for these English words.

    >>> text("position")
    'position'
    """
    return _words.get(words, words)


def series(index: int, *, marker: bool = False) -> dict:
    """Colour, line style and optionally marker of one curve, to pass on to ``plot``.

    Up to 16 curves differ; :func:`use_style` gives the first 8 to successive curves.

    Args:
        index: which curve, from 0.
        marker: whether its points are marked too.

    Returns:
        Keyword arguments of matplotlib's ``plot``.

    Raises:
        ValueError: if ``index`` is not 0 to 15.

    >>> series(1, marker=True)
    {'color': '#D55E00', 'linestyle': '--', 'marker': 's'}
    """
    n = len(COLORS)
    if index not in range(n * n):
        raise ValueError(f"a curve's index must be 0 to {n * n - 1}, got {index}")
    again = (index + index // n) % n  # the second round pairs each colour with another style
    style = {"color": COLORS[index % n], "linestyle": LINE_STYLES[again]}
    return {**style, "marker": MARKERS[again]} if marker else style


def use_style(*, image_format: str = "svg") -> None:
    """Make matplotlib, and the notebook that shows it, draw as the course does.

    Every chapter begins with this call. It also gives PyTorch one thread
    (:func:`lib.timing.one_thread`).

    Args:
        image_format: ``"svg"``, or ``"retina"`` (PNG at twice the resolution) for a figure
            that would be heavy as SVG.

    Raises:
        ValueError: if ``image_format`` is neither.
    """
    if image_format not in ("svg", "retina"):
        raise ValueError(f"image_format must be 'svg' or 'retina', got {image_format!r}")
    import matplotlib as mpl
    from cycler import cycler

    from .timing import one_thread

    one_thread()
    curves = [series(index) for index in range(2 * len(COLORS))]
    mpl.rcdefaults()  # the same figures whatever a matplotlibrc sets
    mpl.rcParams.update(
        {
            "axes.grid": True,
            "axes.prop_cycle": cycler(
                color=[curve["color"] for curve in curves],
                linestyle=[curve["linestyle"] for curve in curves],
            ),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": "medium",
            "figure.constrained_layout.hspace": 0.06,  # a title belongs to the panel below it
            "figure.constrained_layout.use": True,
            "figure.figsize": (WIDTH, 3.2),
            "font.family": [*_fonts, "DejaVu Sans"],
            "font.size": 11,
            "grid.alpha": 0.3,
            "image.interpolation": "none",  # one pixel per cell in the file: small and sharp
            "legend.handlelength": 3,  # long enough to tell the line styles apart
            "lines.linewidth": 2,
            "svg.fonttype": "path",
            "svg.hashsalt": "attention-position-cache",
        }
    )
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        from matplotlib_inline.config import InlineBackend

        inline = InlineBackend.instance(parent=shell)
        inline.print_figure_kwargs = {"bbox_inches": None, "metadata": {"Date": None}}
        inline.figure_formats = {image_format}


def heatmap(
    matrix,
    *,
    kind: str = "scores",
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    x_label: str = "",
    y_label: str = "",
    color_label: str = "",
    title: str = "",
    value_format: str | None = "{:.2f}",
    limit: float | None = None,
    ax=None,
):
    """Draw a matrix, row 0 on top, with its numbers in the cells.

    Show it with class ``no-invert`` (and alt text) in a book: dark pages would turn its colours.

    Args:
        matrix: array or tensor, ``(rows, columns)``; infinite and NaN cells are drawn grey.
        kind: ``"scores"`` (blue above 0, white at 0, orange below) or ``"weights"``
            (the blue half, and no negative values).
        row_labels: a word for each row; ``column_labels`` for each column.
        x_label: what runs along the columns, with its unit; ``y_label``, along the rows.
        color_label: what the colour means, with its unit; without one there is no colour bar.
        title: a few words above.
        value_format: how a cell's number is written; ``None`` leaves it out.
        limit: the value with the deepest colour; the largest absolute value by default. Give
            one to all the maps that are to be compared.
        ax: where to draw; a new figure by default.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: if the matrix is not one, labels do not match it, weights are negative, a
            value is beyond the limit, or numbers would be too small to read.
    """
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    if hasattr(matrix, "detach"):  # a tensor; numpy has no bfloat16
        matrix = matrix.detach().cpu().double()
    matrix = np.asarray(matrix, dtype=float)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"a heat map needs shape (rows, columns), got {matrix.shape}")
    rows, columns = matrix.shape
    labels = {"row": (row_labels, rows), "column": (column_labels, columns)}
    for name, (words, length) in labels.items():
        if words is not None and len(words) != length:
            raise ValueError(f"got {len(words)} {name} labels for {length} {name}s: {list(words)}")
    if kind not in ("scores", "weights"):
        raise ValueError(f"kind must be 'scores' or 'weights', got {kind!r}")
    finite = matrix[np.isfinite(matrix)]
    if kind == "weights" and finite.size and finite.min() < 0:
        raise ValueError(
            f"weights cannot be negative, got {finite.min():g}; for kind='scores' they can"
        )
    largest = np.abs(finite).max(initial=0)
    if limit is not None and largest > limit:
        raise ValueError(f"the largest absolute value is {largest:g}, beyond limit={limit:g}")
    if value_format is not None and columns > MOST_NUMBERED:
        raise ValueError(
            f"numbers in {columns} columns could not be read, {MOST_NUMBERED} is the most: pass "
            "value_format=None and a color_label"
        )
    limit = limit or largest or 1.0

    if ax is None:
        square = 0.8 * WIDTH * rows / columns
        height = min(max(square, min(0.45 * rows, 2)), 1.2 * WIDTH) + 0.9
        ax = plt.figure(figsize=(WIDTH, height)).add_subplot()
    shades_of = (*NEGATIVE, "white", *POSITIVE) if kind == "scores" else ("white", *POSITIVE)
    color_map = mpl.colors.LinearSegmentedColormap.from_list(kind, shades_of, bad=EMPTY)
    shades = mpl.colors.Normalize(-limit if kind == "scores" else 0, limit)
    shown = np.ma.masked_invalid(matrix)
    image = ax.imshow(shown, cmap=color_map, norm=shades, aspect="auto", interpolation="none")
    ax.grid(False)
    for axis, (words, length) in zip((ax.yaxis, ax.xaxis), labels.values(), strict=True):
        if words is not None:
            axis.set_ticks(range(length), [text(each) for each in words])
            axis.set_tick_params(length=0)
    if value_format is not None:
        size = min(11, 72 * WIDTH / columns / 4.2)  # about four characters to a cell
        for (i, j), value in np.ndenumerate(matrix):
            words = value_format.format(value).replace("-", "−").replace("inf", "∞")
            ink = _ink(
                color_map(shades(value)) if np.isfinite(value) else mpl.colors.to_rgba(EMPTY)
            )
            ax.text(j, i, words, ha="center", va="center", color=ink, fontsize=size)
    if color_label:
        ax.figure.colorbar(image, ax=ax).set_label(text(color_label))
    ax.set(xlabel=text(x_label), ylabel=text(y_label), title=text(title))
    return ax


def attention_map(
    weights, tokens_q: Sequence[str], tokens_k: Sequence[str] | None = None, **options
):
    """Draw attention weights: queries (position m) downwards, keys (position n) to the right.

    Args:
        weights: ``(q_len, k_len)``, each row summing to 1.
        tokens_q: the queries' tokens.
        tokens_k: the keys' tokens; the same by default.
        options: as for :func:`heatmap`; the deepest colour is weight 1 unless ``limit`` is given.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: as :func:`heatmap`.
    """
    options = {
        "kind": "weights",
        "x_label": "key, position n",
        "y_label": "query, position m",
        "limit": 1.0,
        **options,
    }
    tokens_k = tokens_q if tokens_k is None else tokens_k
    return heatmap(weights, row_labels=tokens_q, column_labels=tokens_k, **options)


def attention_flow(*changed: str, words: Mapping[str, str] | None = None):
    """Draw the way from tokens to the output of an attention head, with some parts marked.

    One drawing for all chapters: what a chapter is about has a thick coloured edge. Dotted boxes
    are parts that some models have and others leave out.

    Args:
        changed: names of the parts to mark, keys of ``FLOW``.
        words: parts that are marked too, each with the words to write in its box.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: if a name is not in ``FLOW``.
    """
    from matplotlib import pyplot as plt

    words = words or {}
    changed = {*changed, *words}
    if unknown := sorted(changed - FLOW.keys()):
        raise ValueError(f"the flow has no part {unknown}, only {list(FLOW)}")
    _, ax = plt.subplots(figsize=(WIDTH, 1.2 * WIDTH))
    for name, ((x, y), width, usual, always) in FLOW.items():
        marked = name in changed
        weight = "bold" if marked else "normal"
        ax.text(x, y, text(words.get(name, usual)), ha="center", va="center", weight=weight)
        box = plt.Rectangle(
            (x - width / 2, y - 0.32),
            width,
            0.64,
            fill=False,
            edgecolor=COLORS[1] if marked else "black",
            linewidth=3 if marked else 1,
            linestyle="-" if always or marked else ":",
        )
        ax.add_patch(box)
    for x, start, end in _ARROWS:
        place = {"xy": (x, FLOW[end][0][1] + 0.32), "xytext": (x, FLOW[start][0][1] - 0.32)}
        ax.annotate("", **place, arrowprops={"arrowstyle": "->", "shrinkA": 0, "shrinkB": 0})
    ax.set(xlim=(-0.05, 4.05), ylim=(-11.4, 0.4))
    ax.axis("off")
    return ax


def _luminance(color) -> float:
    """Relative luminance of an RGB colour, 0 to 1 (WCAG 2)."""
    parts = np.asarray(color[:3])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def _ink(background) -> str:
    """Black or white, whichever stands out more (their contrast is equal at 0.179)."""
    return "black" if _luminance(background) > 0.179 else "white"
