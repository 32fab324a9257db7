r"""An interactive figure: frames computed in Python, chosen by a short script.

No library and no kernel. The output is one piece of HTML: an SVG, its controls, and a table of
what changes. It works offline, by keyboard, by pointer and by touch, in light and dark pages, and
shows its first frame where no script runs. The script interpolates nothing: it looks values up,
so each number on the page is one that the cell computed.

>>> import math
>>> plane = Axes(x=(-1, 1), y=(-1, 1), equal=True)
>>> def frame(turns):
...     angle = 2 * math.pi * turns
...     return [plane.arrow(0, 0, math.cos(angle), math.sin(angle))]
>>> SliderFigure(
...     name="turn",
...     title="A pair that turns",
...     controls=[Slider("turns", "angle", [0, 0.25, 0.5], "{} of a turn")],
...     axes=plane,
...     frame=frame,
...     alt="The pair after {turns} of a turn.",
... )
<SliderFigure turn: 3 frames. The pair after 0 of a turn.>

To keep the HTML small, a frame is a list of SVG elements (:mod:`lib.svg`), and every frame has the
same ones. Of an attribute that changes, the figure stores one value per combination of *the
controls that it depends on*; what never changes is written once.

Words (titles, labels, formats) go through :func:`lib.figures.text`.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import product
from typing import Any

from lib.figures import text as word
from lib.svg import Axes, Element, minus

__all__ = ["Axes", "Checkbox", "Control", "Select", "Slider", "SliderFigure"]

MAX_FRAMES = 2000
# A control is disabled until the script enables it, and JupyterLab's shortcuts must not take its
# arrow keys. The attribute has to be on the control: outside it, those for `:focus` would match.
INITIAL = {"disabled": "", "data-lm-suppress-shortcuts": "true"}


@dataclass(frozen=True)
class Control:
    """What the reader moves: ``values`` are passed to ``frame``, ``texts`` are shown and spoken.

    Attributes:
        kind: ``"range"``, ``"select"`` or ``"checkbox"``.
        name: the argument of ``frame`` that gets the value.
        label: what is chosen, in words.
        values: all that can be chosen, in order.
        texts: each value in words.
        start: index of the first choice in ``values``.
    """

    kind: str
    name: str
    label: str
    values: tuple
    texts: tuple[str, ...]
    start: int


def Slider(name: str, label: str, values: Iterable, format: str = "{}", *, start=None) -> Control:
    """A range input over ``values`` in the order given.

    Args:
        name: the argument of ``frame`` that gets the value.
        label: what is chosen.
        values: two or more.
        format: how a value is written, with its unit: a format string with one field.
        start: the value shown first; the first one by default.

    Returns:
        A :class:`Control`.

    Raises:
        ValueError: if the name is no identifier, there is one value only, or none is ``start``.
    """
    return _control("range", name, label, values, lambda v: minus(word(format).format(v)), start)


def Select(name: str, label: str, options: Iterable[str], *, start=None) -> Control:
    """A drop-down list; as :func:`Slider`. The reader sees an option's translation."""
    return _control("select", name, label, options, word, start)


def Checkbox(name: str, label: str, *, start: bool = False) -> Control:
    """A box to tick; ``frame`` gets ``False`` or ``True``."""
    return _control("checkbox", name, label, (False, True), str, start)


def _control(kind: str, name: str, label: str, values: Iterable, to_text, start) -> Control:
    values = tuple(values)
    if not name.isidentifier():
        raise ValueError(f"control {label!r} needs a name that an argument can have, got {name!r}")
    if len(values) < 2:
        raise ValueError(f"control {name!r} needs 2 values or more, got {len(values)}: {values}")
    start = values[0] if start is None else start
    if start not in values:
        raise ValueError(f"control {name!r} cannot start at {start!r}: its values are {values}")
    return Control(kind, name, label, values, tuple(map(to_text, values)), values.index(start))


class SliderFigure:
    """SVG, controls and script in one piece of HTML; a notebook shows it as a cell's value.

    Args:
        name: lower-case letters, digits and hyphens; the id on the page is ``figure-`` + name.
        title: a short line above the figure.
        controls: one or more of :func:`Slider`, :func:`Select`, :func:`Checkbox`.
        axes: the axes that the marks came from, one or several.
        frame: called with every combination of the controls' values, by name; returns the marks
            (a list of them counts as several). Every frame has the same marks in the same order;
            a mark that is absent in some frames has no points there, or an empty text.
        alt: the picture's text alternative: a format string of the controls' names, or a
            function of them.
        readout: likewise; shown below the controls, and spoken when it changes.
        max_bytes: the largest size of the HTML, in bytes of UTF-8.

    Attributes:
        name: as given.
        n_frames: how many combinations the controls' values have.
        alt: the description of the frame that is shown first.
        html: the whole figure.

    Raises:
        ValueError: if the name cannot be an id, two controls have one name, there are no axes, a
            frame's marks differ from the first one's, there are more than 2,000 frames, or the
            HTML is too large.
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
        names = [control.name for control in controls]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"figure {name!r} needs controls with different names, got {names}")
        self.name = name
        self.n_frames = math.prod(len(control.values) for control in controls)
        if self.n_frames > MAX_FRAMES:
            raise ValueError(f"figure {name!r} has {self.n_frames} frames, more than {MAX_FRAMES}")
        writer = _Writer(controls)
        chosen = [
            {control.name: control.values[i] for control, i in zip(controls, places, strict=True)}
            for places in writer.combinations
        ]
        alts = [_text(alt, values) for values in chosen]
        self.alt = alts[writer.start]

        axes = [axes] if isinstance(axes, Axes) else list(axes)
        if not axes:
            raise ValueError(f"figure {name!r} needs axes to draw in, got none: {axes}")
        width = max(each.box[0] + each.box[2] for each in axes)
        height = max(each.box[1] + each.box[3] for each in axes)
        size = {"role": "img", "viewBox": f"0 0 {width:g} {height:g}"}
        # In the order of the page: the script finds the parts that change by counting.
        html = [
            writer.write([Element("svg", {**size, "aria-label": words}) for words in alts]),
            *(writer.write([element]) for each in axes for element in each.outline()),
            *(writer.write(versions) for versions in _versions(frame, chosen)),
            "</svg>",
            *(_rows(writer, k, control) for k, control in enumerate(controls)),
        ]
        if readout is not None:
            html.append(writer.write([Element("output", {}, _text(readout, v)) for v in chosen]))
        self.html = enclose(
            name,
            title,
            html,
            width=1.25 * width,
            script=SCRIPT,
            data=writer.changes,
            max_bytes=max_bytes,
        )

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<SliderFigure {self.name}: {self.n_frames} frames. {self.alt}>"


def enclose(
    name: str,
    title: str,
    inside: Iterable[str],
    *,
    width: float,
    script: str,
    data: Any,
    max_bytes: int,
    style: str = "",
) -> str:
    """What an interactive figure has around its picture and its controls.

    Args:
        name: as of a :class:`SliderFigure`; ``title`` and ``max_bytes`` likewise.
        inside: HTML between the title and the note for readers without a script.
        width: the largest width on the page, in pixels.
        script: a function in JavaScript of its own script element and of ``data``.
        data: what the script gets, as JSON can hold it.
        style: more CSS than that of all figures.

    Raises:
        ValueError: if the name cannot be an id, or the HTML is too large.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"name {name!r} must match [a-z][a-z0-9-]*: it becomes an id")
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    packed = packed.replace("<", "\\u003c")  # so that no string can end the script
    title = escape(word(title))
    html = (
        f'<div class="slider-figure" id="figure-{name}" role="group" aria-label="{title}" '
        f'style="max-width:{width:g}px"><style>{STYLE}{style}</style>'
        f"<p><strong>{title}</strong></p>{''.join(inside)}"
        f'<p class="note">{escape(word(NOTE))}</p>'
        f"<script>{script}(document.currentScript,{packed})</script></div>"
    )
    weight = len(html.encode())
    if weight > max_bytes:
        raise ValueError(
            f"figure {name!r} weighs {weight} bytes, more than max_bytes={max_bytes}: "
            "take fewer frames or points"
        )
    return html


def control_row(control: Control) -> str:
    """A control as it is at first, inside its label."""
    return _rows(_Writer([control]), 0, control)


def draw(elements: Iterable[Element]) -> str:
    """SVG elements that a figure's table says nothing of."""
    return "".join(_Writer([]).write([element]) for element in elements)


class _Writer:
    """Writes elements as HTML, and keeps the table of what changes for the script.

    A row of the table is ``[part, attribute, strides, values]``: which of the changing elements,
    which attribute (``""`` for its text), and where the value for the controls' places is:
    ``values[sum(stride * place)]``.
    """

    def __init__(self, controls: Sequence[Control]) -> None:
        self.sizes = [len(control.values) for control in controls]
        self.combinations = list(product(*map(range, self.sizes)))
        self.start = self.combinations.index(tuple(control.start for control in controls))
        self.changes: list[tuple] = []
        self.n_parts = 0

    def write(self, versions: Sequence[Element]) -> str:
        """One element, given as it is in every frame, or once where it never changes."""
        start = versions[self.start if len(versions) > 1 else 0]
        changing = False
        for name in ("", *start.attributes):
            values = [version.attributes[name] if name else version.text for version in versions]
            if any(value != values[0] for value in values):
                self.changes.append((self.n_parts, name, *self.table(values)))
                changing = True
        self.n_parts += changing
        attributes = "".join(f' {name}="{escape(str(v))}"' for name, v in start.attributes.items())
        opening = f"<{start.tag}{attributes}{' data-part' * changing}>"
        open_ended = start.tag in ("svg", "select", "input")
        return opening if open_ended else f"{opening}{escape(start.text)}</{start.tag}>"

    def table(self, values: list) -> tuple[list[int], list]:
        """Strides, and one value for each combination of the controls that matter."""
        by_places = dict(zip(self.combinations, values, strict=True))
        remaining, strides, step = self.combinations, [], 1
        for k in reversed(range(len(self.sizes))):
            without = {places: (*places[:k], 0, *places[k + 1 :]) for places in remaining}
            matters = any(by_places[a] != by_places[b] for a, b in without.items())
            strides.insert(0, step if matters else 0)
            if matters:
                step *= self.sizes[k]
            else:
                remaining = [places for places in remaining if places[k] == 0]
        return strides, [by_places[places] for places in remaining]


def _versions(frame: Callable[..., Iterable], chosen: list[dict]) -> Iterable[tuple[Element, ...]]:
    """For each element of a frame, what it is in every frame."""
    frames: list[list[Element]] = []
    for values in chosen:
        marks = [[mark] if isinstance(mark, Element) else mark for mark in frame(**values)]
        frames.append([element for mark in marks for element in mark])
        first, this = ([(e.tag, *e.attributes) for e in frames[k]] for k in (0, -1))
        if first != this:
            raise ValueError(
                f"every frame needs the same marks in the same order: {chosen[0]} has {len(first)} "
                f"elements and {values} has {len(this)}, or elements of another kind"
            )
    return zip(*frames, strict=True)


def _rows(writer: _Writer, k: int, control: Control) -> str:
    """The k-th control inside its label, which needs no id then."""
    label = f"<span>{escape(word(control.label))}</span>"
    if control.kind == "select":
        options = "".join(
            f'<option value="{i}"{" selected" * (i == control.start)}>{escape(words)}</option>'
            for i, words in enumerate(control.texts)
        )
        return (
            f"<label>{label}{writer.write([Element('select', INITIAL)])}{options}</select></label>"
        )
    if control.kind == "checkbox":
        ticked = {"checked": ""} if control.start else {}
        box = writer.write([Element("input", {"type": "checkbox", **ticked, **INITIAL})])
        return f"<label>{box}{label}</label>"
    last = len(control.values) - 1
    fixed = {"type": "range", "min": 0, "max": last, "value": control.start, **INITIAL}
    shape = {"aria-hidden": "true", "style": f"min-width:{max(map(len, control.texts))}ch"}
    texts = [control.texts[places[k]] for places in writer.combinations]
    spoken = writer.write([Element("input", {**fixed, "aria-valuetext": words}) for words in texts])
    shown = writer.write([Element("b", shape, words) for words in texts])
    return f"<label>{label}{spoken}{shown}</label>"


def _text(words: str | Callable[..., str], values: dict) -> str:
    return minus(words(**values) if callable(words) else word(words).format(**values))


NOTE = "The controls need JavaScript. What you see is the first frame."

# Colours are the page's where it names them (Sphinx's theme, then JupyterLab), else the system's.
# On a dark page blue and orange are lighter: pale cells and thin lines must be visible there too.
STYLE = files("lib").joinpath("interactive.css").read_text(encoding="utf-8").strip()
SCRIPT = files("lib").joinpath("interactive.js").read_text(encoding="utf-8").strip()
