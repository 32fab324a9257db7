r"""Lines, bars, arrows and cells as SVG elements: what the frames of a slider figure are made of.

An :class:`Axes` maps data values to places in the picture. Its methods take data and return
:class:`Element` objects: plain data, compared and written by :mod:`lib.interactive`. Each mark
names a style class; the colours and dashes of the classes are in ``lib/interactive.css``.

Units: marks take data units of their axes; boxes, widths and sizes are SVG units. A figure is 480
of them wide as a rule, and text is 15 high, which is about 11 pixels on a phone.

>>> Axes(x=(0, 10), y=(0, 1), box=(0, 0, 126, 124)).line([0, 5, 10], [0, 1, 0]).attributes["d"]
'M10 114l50-100 50 100'
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from lib.figures import text as word

__all__ = ["Axes", "Element", "minus"]

N_SERIES = 4  # colours and line styles; the colours are those of lib.figures.COLORS
DEEPEST = 0.6  # opacity of the strongest cell: the page's text stays readable on top of it
SHAPES = (  # what marks a point of each series, around the point
    "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "m-4.5-4.5h9v9h-9z",
    "m0-6.5l6.5 6.5-6.5 6.5-6.5-6.5z",
    "m0-6l6 10.5h-12z",
)


@dataclass(frozen=True)
class Element:
    """One SVG element as data.

    :class:`Axes` returns them, and :class:`lib.interactive.SliderFigure` writes them.

    Attributes:
        tag: the element's name, as ``"path"``.
        attributes: by name, lengths in SVG units.
        text: the words inside; none by default.
    """

    tag: str
    attributes: Mapping[str, Any]
    text: str = ""


@dataclass(frozen=True)
class Axes:
    """A rectangle with its own units. It draws its frame once, and makes marks from data.

    Args:
        x: data values at the left and at the right edge.
        y: data values at the bottom and at the top edge (for a matrix, the larger one first).
        x_label: what is along the axis, with its unit; ``y_label`` likewise.
        x_ticks: values to mark, or a mapping of values to words; ``y_ticks`` likewise.
        box: left, top, width, height in SVG units, labels included.
        equal: shrink the rectangle until one unit is as long in both directions.

    Attributes:
        inner: left, top, width, height of the rectangle itself in SVG units, without the labels.

    Raises:
        ValueError: if a range is empty, or a box too small for its labels. From the marks: if a
            place lies outside the axes or is NaN, ``xs`` and ``ys`` differ in number, or the
            series is neither ``None`` nor 0 to 3.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str = ""
    y_label: str = ""
    x_ticks: Sequence[float] | Mapping[float, str] = ()
    y_ticks: Sequence[float] | Mapping[float, str] = ()
    box: tuple[float, float, float, float] = (0, 0, 480, 300)
    equal: bool = False
    inner: tuple[float, float, float, float] = field(init=False)  # the same without the labels

    def __post_init__(self) -> None:
        for name, (low, high) in (("x", self.x), ("y", self.y)):
            if low == high:
                raise ValueError(f"the {name} axis needs two different ends, got {low} and {high}")
        longest = max((len(words) for words in _ticks(self.y_ticks).values()), default=0)
        west = 10 + 22 * bool(self.y_label) + 9 * longest
        south = 10 + 22 * bool(self.x_label) + 18 * bool(self.x_ticks)
        left, top, width, height = self.box
        across, down = width - west - 16, height - south - 14
        if across <= 0 or down <= 0:
            raise ValueError(f"the labels need {west + 16} × {south + 14}, got a box {self.box}")
        if self.equal:
            unit = min(across / abs(self.x[1] - self.x[0]), down / abs(self.y[1] - self.y[0]))
            west += (across - unit * abs(self.x[1] - self.x[0])) / 2
            across, down = (unit * abs(end - begin) for begin, end in (self.x, self.y))
        object.__setattr__(self, "inner", (left + west, top + 14, across, down))

    def line(self, xs, ys, *, series: int | None = 0, width: float = 2.5) -> Element:
        """A polyline; no points at all draw nothing. ``series=None`` takes the text's colour."""
        path = _path([self._at(x, y) for x, y in _pairs(xs, ys)])
        style = {"class": f"line {_series(series)}", "stroke-width": width}
        return Element("path", {**style, "d": path})

    def points(self, xs, ys, *, series: int | None = 0) -> Element:
        """Points, with a shape for each series."""
        style = _series(series)
        places = [self._at(x, y) for x, y in _pairs(xs, ys)]
        path = "".join(f"M{_n(x)} {_n(y)}{SHAPES[series or 0]}" for x, y in places)
        return Element("path", {"class": f"fill {style}", "d": path})

    def bars(self, xs, heights, *, series: int | None = 0, width=0.8, base=0.0) -> Element:
        """Upright bars from ``base``, ``width`` data units wide and centred on ``xs``."""
        path = ""
        for x, height in _pairs(xs, heights):
            left, foot = self._at(x - width / 2, base)
            right, end = self._at(x + width / 2, height)
            path += f"M{_n(left)} {_n(foot)}V{_n(end)}H{_n(right)}V{_n(foot)}z"
        return Element("path", {"class": f"bar {_series(series)}", "d": path})

    def arrow(self, x0, y0, x1, y1, *, series: int | None = 0, width: float = 2.5) -> list[Element]:
        """An arrow from one point to another; of length 0, it shows nothing."""
        start, end = self._at(x0, y0), self._at(x1, y1)
        length = math.dist(start, end)
        style = _series(series)
        head = ""
        if length > 0.5:
            along = [(b - a) / length * min(13, length) for a, b in zip(start, end, strict=True)]
            x, y = end[0] - along[0], end[1] - along[1]
            side = 0.45 * along[1], -0.45 * along[0]
            head = _path([(x - side[0], y - side[1]), end, (x + side[0], y + side[1])]) + "z"
            end = x, y
        shaft = _path([start, end])
        return [
            Element("path", {"class": f"line {style}", "stroke-width": width, "d": shaft}),
            Element("path", {"class": f"fill {style}", "d": head}),
        ]

    def cells(self, matrix, *, limit: float = 1.0, value_format: str | None = "{:.2f}"):
        """A heat map: cell (i, j) is centred on x = j, y = i.

        Positive values are blue, negative ones orange, and the deeper the nearer to ``limit``:
        pass the largest absolute value of all frames, so that frames can be compared. A number
        that is not finite leaves its cell empty, with the text −∞, or no text for a NaN.

        Args:
            matrix: tensor, array or lists, ``(rows, columns)``. The axes reach half a unit
                beyond the first and the last cell: ``x=(-0.5, columns - 0.5)``.
            limit: the absolute value with the deepest colour.
            value_format: how a cell's number is written; ``None`` leaves it out.

        Returns:
            A list of elements, for each cell a rectangle and then its number.

        Raises:
            ValueError: if rows differ in length, a value is beyond the limit, or a cell lies
                outside the axes.
        """
        limit = float(limit)
        rows = matrix.tolist() if hasattr(matrix, "tolist") else matrix
        lengths = [len(row) for row in rows]
        if len(set(lengths)) > 1:
            raise ValueError(f"the rows of a matrix have equal lengths, got {lengths}")
        drawn = []
        for i, j in ((i, j) for i, row in enumerate(rows) for j in range(len(row))):
            value = rows[i][j]
            finite = math.isfinite(value)
            if finite and abs(value) > limit:
                raise ValueError(f"cell ({i}, {j}) is {value:g}, beyond limit={limit:g}")
            (left, a), (right, b) = self._at(j - 0.5, i - 0.5), self._at(j + 0.5, i + 0.5)
            place = {"x": _n(min(left, right)), "y": _n(min(a, b))}
            size = {"width": _n(abs(right - left)), "height": _n(abs(b - a))}
            depth = round(DEEPEST * abs(value) / limit, 2) if finite and value else 0
            style = {"class": f"cell s{int(value < 0)}", "fill-opacity": depth}
            drawn.append(Element("rect", {**place, **size, **style}))
            if value_format is not None:
                number = "" if math.isnan(value) else value_format.format(value)
                number = minus(number.replace("inf", "∞"))
                drawn.append(_words((left + right) / 2, (a + b) / 2 + 5, number))
        return drawn

    def label(self, x, y, words: str, *, dx=0, dy=0, anchor="middle") -> Element:
        """Words at a point, moved by ``dx`` and ``dy`` SVG units (down is positive)."""
        across, down = self._at(x, y)
        return _words(across + dx, down + dy, minus(word(words)), anchor=anchor, style="halo")

    def outline(self) -> list[Element]:
        """The outline, ticks and labels: what does not change."""
        left, top, width, height = self.inner
        bottom = top + height
        box = f"M{_n(left)} {_n(top)}h{_n(width)}v{_n(height)}h{_n(-width)}z"
        drawn = [Element("path", {"class": "axis", "d": box})]
        grid = ""
        for value, words in _ticks(self.x_ticks).items():
            x = self._at(value, self.y[0])[0]
            if not isinstance(self.x_ticks, Mapping):  # words name places, numbers measure
                grid += f"M{_n(x)} {_n(bottom)}v{_n(-height)}"
            drawn.append(_words(x, bottom + 19, words))
        for value, words in _ticks(self.y_ticks).items():
            y = self._at(self.x[0], value)[1]
            if not isinstance(self.y_ticks, Mapping):
                grid += f"M{_n(left)} {_n(y)}h{_n(width)}"
            drawn.append(_words(left - 6, y + 5, words, anchor="end"))
        drawn.insert(1, Element("path", {"class": "grid", "d": grid}))
        if self.x_label:
            down = bottom + 22 + 18 * bool(self.x_ticks)
            drawn.append(_words(left + width / 2, down, word(self.x_label)))
        if self.y_label:
            turn = f"translate({_n(self.box[0] + 16)} {_n(top + height / 2)})rotate(-90)"
            turned = {"text-anchor": "middle", "transform": turn}
            drawn.append(Element("text", turned, word(self.y_label)))
        return drawn

    def _at(self, x: float, y: float) -> tuple[float, float]:
        """Data units to SVG units."""
        x, y = float(x), float(y)
        left, top, width, height = self.inner
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        if not (-1e-6 <= across <= 1 + 1e-6 and -1e-6 <= up <= 1 + 1e-6):  # a NaN fails as well
            raise ValueError(f"({x:g}, {y:g}) lies outside the axes x={self.x}, y={self.y}")
        return left + across * width, top + (1 - up) * height


def _series(series: int | None) -> str:
    if series is not None and series not in range(N_SERIES):
        raise ValueError(f"series must be None or 0 to {N_SERIES - 1}, got {series}")
    return "s" if series is None else f"s{series}"


def minus(words: str) -> str:
    """A minus sign before a number, in place of a hyphen."""
    return re.sub(r"(?<![\w-])-(?=[\d.∞])", "−", words)


def _n(value: float) -> str:
    """A length to a tenth of a unit, in as few characters as there are."""
    return f"{round(value, 1) + 0.0:g}"


def _path(places: Sequence[tuple[float, float]]) -> str:
    """A polyline as steps from point to point, which is shorter than the points themselves."""
    tenths = [(round(10 * x), round(10 * y)) for x, y in places]
    steps = [f"{_n((x - a) / 10)} {_n((y - b) / 10)}" for (a, b), (x, y) in pairwise(tenths)]
    start = "".join(f"M{_n(x / 10)} {_n(y / 10)}" for x, y in tenths[:1])
    return (start + "l" * bool(steps) + " ".join(steps)).replace(" -", "-")


def _pairs(xs, ys):
    xs, ys = list(xs), list(ys)
    if len(xs) != len(ys):
        raise ValueError(f"got {len(xs)} x values but {len(ys)} y values")
    return zip(xs, ys, strict=True)


def _ticks(ticks) -> dict[float, str]:
    if isinstance(ticks, Mapping):
        return {value: word(words) for value, words in ticks.items()}
    return {value: minus(f"{value:g}") for value in ticks}


def _words(x: float, y: float, words: str, *, anchor="middle", style="") -> Element:
    place = {"x": _n(x), "y": _n(y), "text-anchor": anchor}
    return Element("text", {"class": style, **place} if style else place, words)
