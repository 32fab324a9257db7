r"""A figure to play with: frames computed in Python, chosen by a short script.

No library and no kernel. The output is one piece of HTML: an SVG, its controls, and a table of
what changes. It works offline, by keyboard, by pointer and by touch, in light and dark pages, and
shows its first frame where no script runs. The script interpolates nothing: it looks up what
Python computed, so a number on the page is a number that the cell computed.

>>> plane = Axes(x=(-1, 1), y=(-1, 1), equal=True)
>>> def frame(turns):
...     angle = 2 * math.pi * turns
...     return [plane.arrow(0, 0, math.cos(angle), math.sin(angle))]
>>> SliderFigure(
...     name="turn",
...     title="A pair that turns",
...     controls=[Slider("turns", "angle", [0, 0.25, 0.5], "{} turn")],
...     axes=plane,
...     frame=frame,
...     alt="The pair turned by {turns} of a full turn.",
... )
<SliderFigure turn: 3 frames, The pair turned by 0 of a full turn.>

How it stays small: a frame is a list of SVG elements, and every frame has the same ones. Of an
attribute that changes, the figure stores one value per combination of *the controls that it
depends on*; what never changes is written once.

Units: marks take data units of their :class:`Axes`; boxes, widths and sizes are SVG units. A
figure is 480 units wide as a rule, and text is 15 units high, about 11 pixels on a phone.

Words (titles, labels, ``alt``, ``readout`` and the formats) go through :func:`lib.figures.text`.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise, product
from typing import Any

from lib.figures import COLORS
from lib.figures import text as word

__all__ = ["Axes", "Checkbox", "Element", "Select", "Slider", "SliderFigure"]

N_SERIES = 4  # colours and line styles; the colours are those of lib.figures.COLORS
DEEPEST = 0.6  # opacity of the strongest cell: the page's text stays readable on top of it
MAX_FRAMES = 2000
SHAPES = (  # what marks a point of each series, around the point
    "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "m-4.5-4.5h9v9h-9z",
    "m0-6.5l6.5 6.5-6.5 6.5-6.5-6.5z",
    "m0-6l6 10.5h-12z",
)


@dataclass(frozen=True)
class Element:
    """One SVG element as data: what :class:`Axes` returns and :class:`SliderFigure` writes."""

    tag: str
    attributes: Mapping[str, Any]
    text: str = ""


@dataclass(frozen=True)
class Control:
    """What the reader moves: ``values`` are passed to ``frame``, ``said`` is shown and spoken."""

    kind: str
    name: str
    label: str
    values: tuple
    said: tuple[str, ...]
    start: int


def _control(kind: str, name: str, label: str, values: Iterable, said, start) -> Control:
    values = tuple(values)
    if not name.isidentifier():
        raise ValueError(
            f"a control's name is passed to frame as an argument: got {name!r} with label {label!r}"
        )
    if len(values) < 2:
        raise ValueError(f"control {name!r} needs 2 values or more, got {len(values)}")
    start = values[0] if start is None else start
    if start not in values:
        raise ValueError(f"control {name!r} cannot start at {start!r}: its values are {values}")
    return Control(kind, name, label, values, tuple(map(said, values)), values.index(start))


def Slider(name: str, label: str, values: Iterable, format: str = "{}", *, start=None) -> Control:
    """A range input over ``values`` in the order given; ``format`` says a value with its unit."""
    return _control("range", name, label, values, lambda v: _minus(word(format).format(v)), start)


def Select(name: str, label: str, options: Iterable[str], *, start=None) -> Control:
    """A drop-down list: ``frame`` gets the option as it is here, the reader its translation."""
    return _control("select", name, label, options, word, start)


def Checkbox(name: str, label: str, *, start: bool = False) -> Control:
    """A box to tick: ``frame`` gets ``False`` or ``True``."""
    return _control("checkbox", name, label, (False, True), str, start)


@dataclass(frozen=True)
class Axes:
    """A rectangle with its own units. It draws its frame once, and makes marks from data.

    Args:
        x: data values at the left and at the right edge.
        y: data values at the bottom and at the top edge (a matrix wants the larger one first).
        x_label: what is along the axis, with its unit; ``y_label`` likewise.
        x_ticks: values to mark, or a mapping of values to words; ``y_ticks`` likewise.
        box: left, top, width, height in SVG units, labels included.
        equal: shrink the rectangle until one unit is as long in both directions.

    Raises:
        ValueError: if a range is empty, or a box too small for its labels.
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
        return Element(
            "path", {"class": f"line {_series(series)}", "stroke-width": width, "d": path}
        )

    def points(self, xs, ys, *, series: int | None = 0) -> Element:
        """Points, with a shape for each series."""
        shape = SHAPES[series or 0]
        path = "".join(
            f"M{_n(x)} {_n(y)}{shape}" for x, y in (self._at(*pair) for pair in _pairs(xs, ys))
        )
        return Element("path", {"class": f"fill {_series(series)}", "d": path})

    def bars(self, xs, heights, *, series: int | None = 0, width=0.8, base=0.0) -> Element:
        """Upright bars from ``base``, ``width`` data units wide and centred on ``xs``."""
        path = ""
        for x, height in _pairs(xs, heights):
            (left, foot), (right, end) = (
                self._at(x - width / 2, base),
                self._at(x + width / 2, height),
            )
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
            back = [b - a for a, b in zip(along, end, strict=True)]
            side = (-0.45 * along[1], 0.45 * along[0])
            head = (
                _path(
                    [
                        (back[0] + side[0], back[1] + side[1]),
                        end,
                        (back[0] - side[0], back[1] - side[1]),
                    ]
                )
                + "z"
            )
            end = back
        shaft = _path([start, end])
        return [
            Element("path", {"class": f"line {style}", "stroke-width": width, "d": shaft}),
            Element("path", {"class": f"fill {style}", "d": head}),
        ]

    def cells(self, matrix, *, limit: float = 1.0, value_format: str | None = "{:.2f}"):
        """A heat map: cell (i, j) is centred on x = j, y = i.

        Positive values are blue, negative ones orange, and the deeper the nearer to ``limit``:
        pass the largest absolute value of all frames, so that frames can be compared. A number
        that is not finite leaves its cell empty and says − ∞, or nothing for a NaN.
        """
        rows = matrix.tolist() if hasattr(matrix, "tolist") else matrix
        drawn = []
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                if math.isfinite(value) and abs(value) > limit:
                    raise ValueError(f"cell ({i}, {j}) is {value:g}, beyond limit={limit:g}")
                (left, a), (right, b) = self._at(j - 0.5, i - 0.5), self._at(j + 0.5, i + 0.5)
                depth = DEEPEST * abs(value) / limit if math.isfinite(value) else 0
                drawn.append(
                    Element("rect", {
                        "class": f"cell {_series(1 if value < 0 else 0)}",
                        "x": _n(min(left, right)), "y": _n(min(a, b)),
                        "width": _n(abs(right - left)), "height": _n(abs(b - a)),
                        "fill-opacity": round(depth, 2),
                    })
                )  # fmt: skip
                if value_format is not None:
                    said = "" if math.isnan(value) else value_format.format(value)
                    middle, foot = self._at(j, i)
                    drawn.append(_words(middle, foot + 5, _minus(said.replace("inf", "∞"))))
        return drawn

    def label(self, x, y, words: str, *, dx=0, dy=0, anchor="middle") -> Element:
        """Words at a point, moved by ``dx`` and ``dy`` SVG units (down is positive)."""
        across, down = self._at(x, y)
        return _words(across + dx, down + dy, _minus(word(words)), anchor=anchor, style="halo")

    def frame(self) -> list[Element]:
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


class SliderFigure:
    """SVG, controls and script in one piece of HTML; a notebook shows it as a cell's value.

    Args:
        name: lower-case letters, digits and hyphens; the id on the page is ``figure-`` + name.
        title: a short line above the figure.
        controls: one or more of :func:`Slider`, :func:`Select`, :func:`Checkbox`.
        axes: the axes that the marks came from, one or several side by side.
        frame: called with each combination of the controls' values, by name; returns the marks
            (lists of marks are flattened). Each frame has the same marks in the same order; one
            that is absent now and then is drawn with no points, or with no words.
        alt: describes the picture to who cannot see it: a format string of the controls' names,
            or a function of them.
        readout: likewise; shown below the controls, and spoken when it changes.
        max_bytes: how heavy the HTML may be.

    Raises:
        ValueError: if two controls have one name, a frame's marks differ from the first one's,
            there are too many frames, or the figure is too heavy.
    """

    def __init__(
        self,
        *,
        name: str,
        title: str,
        controls: Sequence[Control],
        axes: Axes | Sequence[Axes],
        frame: Callable[..., Iterable],
        alt: str | Callable[..., str],
        readout: str | Callable[..., str] | None = None,
        max_bytes: int = 32_000,
    ) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise ValueError(f"name {name!r} must match [a-z][a-z0-9-]*: it becomes an id")
        names = [control.name for control in controls]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"figure {name!r} needs controls with different names, got {names}")
        self.name = name
        self._combinations = list(product(*(range(len(control.values)) for control in controls)))
        if len(self._combinations) > MAX_FRAMES:
            raise ValueError(
                f"figure {name!r} has {len(self._combinations)} frames, more than {MAX_FRAMES}"
            )
        self._start = self._combinations.index(tuple(control.start for control in controls))
        chosen = [
            {
                control.name: control.values[i]
                for control, i in zip(controls, combination, strict=True)
            }
            for combination in self._combinations
        ]
        axes = [axes] if isinstance(axes, Axes) else axes
        alts = [_say(alt, values) for values in chosen]
        self._alt = alts[self._start]
        self._changes: list[tuple] = []  # (part, attribute, strides, values), "" for the text
        self._n_parts = 0

        width = max(left + across for left, _, across, _ in (each.box for each in axes))
        height = max(top + down for _, top, _, down in (each.box for each in axes))
        still = "".join(self._write([element]) for each in axes for element in each.frame())
        size = {"role": "img", "viewBox": f"0 0 {_n(width)} {_n(height)}"}
        svg = [Element("svg", {**size, "aria-label": words}) for words in alts]
        picture = self._write(svg, closed=False) + still + self._marks(frame, chosen) + "</svg>"
        rows = "".join(self._control(k, control) for k, control in enumerate(controls))
        if readout is not None:
            said = [Element("output", {}, _say(readout, values)) for values in chosen]
            rows += self._write(said)
        data = json.dumps(self._changes, ensure_ascii=False, separators=(",", ":"))
        data = data.replace("<", "\\u003c")  # so that no string can end the script
        self.html = (
            f'<div class="slider-figure" id="figure-{name}" role="group" '
            f'aria-label="{escape(word(title))}" '
            f'data-lm-suppress-shortcuts="true" style="max-width:{_n(1.25 * width)}px">'
            f"<style>{STYLE}</style><p><strong>{escape(word(title))}</strong></p>{picture}{rows}"
            f'<p class="note">{escape(word(NOTE))}</p>'
            f"<script>{SCRIPT}(document.currentScript,{data})</script></div>"
        )
        if len(self.html.encode()) > max_bytes:
            raise ValueError(
                f"figure {name!r} weighs {len(self.html.encode())} bytes, more than "
                f"max_bytes={max_bytes}: take fewer frames or points"
            )

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<SliderFigure {self.name}: {len(self._combinations)} frames, {self._alt}>"

    def _marks(self, frame: Callable[..., Iterable], chosen: list[dict]) -> str:
        """Every mark as SVG."""
        frames = []
        for values in chosen:
            frames.append([
                element
                for mark in frame(**values)
                for element in ([mark] if isinstance(mark, Element) else mark)
            ])  # fmt: skip
            first, this = (
                [(e.tag, list(e.attributes)) for e in f] for f in (frames[0], frames[-1])
            )
            if first != this:
                raise ValueError(
                    f"every frame needs the same marks in the same order: {chosen[0]} has "
                    f"{len(first)} elements and {values} has {len(this)}, or of other kinds"
                )
        return "".join(self._write(versions) for versions in zip(*frames, strict=True))

    def _control(self, k: int, control: Control) -> str:
        """One control with its label; disabled until the script has woken it."""
        said = [control.said[combination[k]] for combination in self._combinations]
        label = f"<span>{escape(word(control.label))}</span>"
        if control.kind == "select":
            options = "".join(
                f'<option value="{i}"{" selected" * (i == control.start)}>{escape(words)}</option>'
                for i, words in enumerate(control.said)
            )
            return f"<label>{label}<select disabled>{options}</select></label>"
        if control.kind == "checkbox":
            ticked = " checked" * control.start
            return f'<label><input type="checkbox" disabled{ticked}>{label}</label>'
        last = len(control.values) - 1
        fixed = {"type": "range", "min": 0, "max": last, "value": control.start, "disabled": ""}
        spoken = self._write(
            [Element("input", {**fixed, "aria-valuetext": words}) for words in said], closed=False
        )
        shape = {"aria-hidden": "true", "style": f"min-width:{max(map(len, said))}ch"}
        shown = self._write([Element("b", shape, words) for words in said])
        return f"<label>{label}{spoken}{shown}</label>"

    def _write(self, versions: Sequence[Element], *, closed: bool = True) -> str:
        """The element at the start, as HTML; what differs between its versions goes on record."""
        start = versions[self._start if len(versions) > 1 else 0]
        found = []
        for name in ("", *start.attributes):
            values = [version.attributes[name] if name else version.text for version in versions]
            if any(value != values[0] for value in values):
                found.append((self._n_parts, name, *self._table(values)))
        self._changes += found
        self._n_parts += bool(found)
        written = "".join(f' {name}="{escape(str(v))}"' for name, v in start.attributes.items())
        opening = f"<{start.tag}{written}{' data-part' if found else ''}>"
        return opening + (f"{escape(start.text)}</{start.tag}>" if closed else "")

    def _table(self, values: list) -> tuple[list[int], list]:
        """Keep one value per combination of the controls that matter; strides find it again."""
        by_place = dict(zip(self._combinations, values, strict=True))
        n_controls = len(self._combinations[0])
        matters = [
            any(by_place[c] != by_place[(*c[:k], 0, *c[k + 1 :])] for c in self._combinations)
            for k in range(n_controls)
        ]
        kept = [
            c
            for c in self._combinations
            if all(m or not i for m, i in zip(matters, c, strict=True))
        ]
        strides = [0] * n_controls
        step = 1
        for k in reversed(range(n_controls)):
            if matters[k]:
                strides[k] = step
                step *= self._combinations[-1][k] + 1
        return strides, [by_place[c] for c in kept]


def _series(series: int | None) -> str:
    if series is not None and series not in range(N_SERIES):
        raise ValueError(f"series must be None or 0 to {N_SERIES - 1}, got {series}")
    return "s" if series is None else f"s{series}"


def _say(words: str | Callable[..., str], values: dict) -> str:
    return _minus(words(**values) if callable(words) else word(words).format(**values))


def _minus(words: str) -> str:
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
    return {value: _minus(f"{value:g}") for value in ticks}


def _words(x: float, y: float, words: str, *, anchor="middle", style="") -> Element:
    place = {"x": _n(x), "y": _n(y), "text-anchor": anchor}
    return Element("text", {"class": style, **place} if style else place, words)


NOTE = "The controls need JavaScript. What you see is the first frame."

# Colours of the page where it names them (Sphinx's theme, then JupyterLab), else of the system.
LIGHT = "--page:#fff;--ink:#222832;color-scheme:light"
DARK = "--page:#14181e;--ink:#ced6dd;color-scheme:dark"
STYLE = (
    """
.slider-figure{LIGHT;--bg:var(--pst-color-background,var(--jp-layout-color0,var(--page)));
background:var(--bg);color:var(--pst-color-text-base,var(--jp-content-font-color1,var(--ink)))}
@media(prefers-color-scheme:dark){.slider-figure{DARK}}
[data-theme=light] .slider-figure,[data-jp-theme-light=true] .slider-figure{LIGHT}
[data-theme=dark] .slider-figure,[data-jp-theme-light=false] .slider-figure{DARK}
html[data-theme=dark] .bd-content div.cell_output .text_html:has(div.slider-figure){
background:none;padding:0}
.slider-figure p{margin:.25rem 0}
.slider-figure svg{display:block;width:100%;height:auto;font:15px system-ui,sans-serif;
fill:currentColor}
.slider-figure label{display:flex;gap:.75rem;align-items:center;min-height:2.75rem}
.slider-figure input,.slider-figure select{margin:0;min-height:2rem;accent-color:#0072B2}
.slider-figure [type=range]{flex:1;min-width:6rem}
.slider-figure [type=checkbox]{width:1.5rem}
.slider-figure b{text-align:right;font-weight:400;font-variant-numeric:tabular-nums}
.slider-figure :focus-visible{outline:3px solid;outline-offset:2px}
.slider-figure output{display:block}
.slider-figure .line{fill:none;stroke:var(--c);stroke-dasharray:var(--d)}
.slider-figure .fill,.slider-figure .cell,.slider-figure .bar{fill:var(--c)}
.slider-figure .cell{stroke:currentColor;stroke-opacity:.25}
.slider-figure .bar{fill-opacity:.45;stroke:var(--c);stroke-width:1.5;stroke-dasharray:var(--d)}
.slider-figure .axis,.slider-figure .grid{fill:none;stroke:currentColor;stroke-opacity:.7}
.slider-figure .grid{stroke-opacity:.15}
.slider-figure .halo{stroke:var(--bg);stroke-width:3;paint-order:stroke}
.slider-figure .s{--c:currentColor}
""".replace("LIGHT", LIGHT).replace("DARK", DARK)
    + "".join(
        f".slider-figure .s{i}{{--c:{color};--d:{dash}}}"
        for i, (color, dash) in enumerate(
            zip(COLORS, ("none", "8 4", "2 3", "9 3 2 3"), strict=True)
        )
    )
)
SCRIPT = """((script, changes) => {
const figure = script.closest(".slider-figure"),
  parts = figure.querySelectorAll("[data-part]"),
  inputs = [...figure.querySelectorAll("input,select")];
function show() {
  const at = inputs.map(i => +(i.type == "checkbox" ? i.checked : i.value));
  for (const [part, name, strides, values] of changes) {
    const value = values[strides.reduce((sum, stride, k) => sum + stride * at[k], 0)];
    if (name) parts[part].setAttribute(name, value);
    else if (parts[part].textContent != value) parts[part].textContent = value;
  }
}
for (const input of inputs) { input.disabled = false; input.addEventListener("input", show); }
figure.querySelector(".note").hidden = true;
show();
})"""
