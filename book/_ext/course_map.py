"""The directive ``course-map``: how the chapters depend on each other, as a picture with links.

Its content is YAML, one entry for each chapter::

    02-multi-head: {at: [0, 1], says: [Heads and, masks], needs: [01-attention], uses: []}

``at`` is column and row, ``says`` the lines in the box, ``needs`` the chapters without which this
one cannot be followed (solid lines), ``uses`` those that it only refers to (dashed lines). A line
that follows from others is not drawn, nor one from the first chapter to a chapter that another line
leads to. The picture uses the page's colours. Below it, the complete list is folded away.
"""

from html import escape

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH, HEIGHT = 126, 52  # of a box
STEP_X, STEP_Y = 138, 84  # from one box to the next


class CourseMap(SphinxDirective):
    """Draw the map and list it."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        chapters = yaml.safe_load("\n".join(self.content))
        folder = self.env.docname.rpartition("/")[0]
        for slug, chapter in chapters.items():
            if f"{folder}/{slug}" not in self.env.found_docs:
                raise self.error(f"course-map: there is no chapter {slug}")
            unknown = {*chapter.get("needs", []), *chapter.get("uses", [])} - chapters.keys()
            if unknown:
                raise self.error(f"course-map: {slug} names {sorted(unknown)}, not in the map")
        return [nodes.raw("", drawing(chapters) + in_words(chapters), format="html")]


def place(chapter: dict) -> tuple[float, float]:
    """The middle of a box."""
    column, row = chapter["at"]
    return 4 + WIDTH / 2 + column * STEP_X, 4 + HEIGHT / 2 + row * STEP_Y


def line(
    start: tuple[float, float],
    end: tuple[float, float],
    kind: str,
    boxes: list[tuple[float, float]],
) -> str:
    """A line between two boxes, from border to border, around the boxes between them."""
    (x1, y1), (x2, y2) = start, end
    below = [abs(x - x1) for x, y in boxes if y1 < y < y2]
    gap = STEP_Y - HEIGHT
    if y1 == y2:  # beside each other
        side = 1 if x2 > x1 else -1
        path = f"M{x1 + side * WIDTH / 2:g} {y1:g}H{x2 - side * WIDTH / 2:g}"
    else:
        top, bottom = y1 + HEIGHT / 2, y2 - HEIGHT / 2
        path = f"M{x1:g} {top:g}"
        if below and min(below) > WIDTH / 2 + 10:  # straight down as far as possible
            top = bottom - gap
            path += f"V{top:g}"
        elif below and x1 == x2:  # beside the boxes in this column, and back
            side = 1 if 2 * x1 < max(x for x, _ in boxes) else -1
            x1 += side * STEP_X / 2 + (3 if kind == "uses" else -3)
            path += f"C{x2:g} {top + gap / 2:g} {x1:g} {top + gap / 2:g} {x1:g} {top + gap:g}"
            top = bottom - gap
            path += f"V{top:g}"
        bend = (bottom - top) / 2 if bottom - top <= STEP_Y else gap / 2
        path += f"C{x1:g} {top + bend:g} {x2:g} {bottom - bend:g} {x2:g} {bottom:g}"
    return f'<path class="{kind}" d="{path}" marker-end="url(#course-map-tip)"/>'


def before(chapters: dict[str, dict], slug: str, kind: str) -> list[str]:
    """The chapters that a chapter builds on; with ``uses``, also those that it refers to."""
    kinds = ("needs", "uses") if kind == "uses" else ("needs",)
    return [other for each in kinds for other in chapters[slug].get(each, [])]


def above(chapters: dict[str, dict], slug: str, kind: str) -> set[str]:
    """The same, directly or through others."""
    direct = before(chapters, slug, kind)
    return set(direct).union(*(above(chapters, other, kind) for other in direct))


def implied(chapters: dict[str, dict], start: str, end: str, kind: str) -> bool:
    """Whether a connection need not be drawn: it follows from others, or from the place."""
    if start == next(iter(chapters)):
        return before(chapters, end, "uses") != [start]
    between = before(chapters, end, kind)
    return any(start in above(chapters, other, kind) for other in between if other != start)


def drawing(chapters: dict[str, dict]) -> str:
    """The SVG."""
    lines, boxes = [], []
    every = [place(chapter) for chapter in chapters.values()]
    for slug, chapter in chapters.items():
        for kind in ("needs", "uses"):
            for other in chapter.get(kind, []):
                if not implied(chapters, other, slug, kind):
                    ends = place(chapters[other]), place(chapter)
                    lines.append(line(*ends, kind, every))
        x, y = place(chapter)
        says = chapter["says"]
        first = y - 4 - 7.5 * (len(says) - 1)
        words = "".join(
            f'<tspan x="{x:g}" y="{first + 15 * number + 15:g}">{escape(text)}</tspan>'
            for number, text in enumerate(says)
        )
        boxes.append(
            f'<a href="{slug}.html"><rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" '
            f'width="{WIDTH}" height="{HEIGHT}" rx="7"/><text><tspan class="number" '
            f'x="{x:g}" y="{first:g}">{slug[:2]}</tspan>{words}</text></a>'
        )
    width = 8 + WIDTH + STEP_X * max(chapter["at"][0] for chapter in chapters.values())
    height = 8 + HEIGHT + STEP_Y * max(chapter["at"][1] for chapter in chapters.values())
    return (
        f'<svg class="course-map" viewBox="0 0 {width} {height}" role="group" '
        'aria-label="Map of the book: a line leads from a chapter to one that builds on it">'
        '<defs><marker id="course-map-tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L6 3L0 6z"/></marker></defs>'
        + "".join(lines + boxes)
        + "</svg>"
    )


def in_words(chapters: dict[str, dict]) -> str:
    """The map as a list."""
    items = []
    for slug, chapter in chapters.items():
        name = f'<a href="{slug}.html">{slug[:2]} {escape(" ".join(chapter["says"]))}</a>'
        parts = [
            f"{verb} {', '.join(other[:2] for other in chapter[kind])}"
            for kind, verb in (("needs", "builds on"), ("uses", "refers to"))
            if chapter.get(kind)
        ]
        items.append(f"<li>{name}: {'; '.join(parts) or 'begins here'}</li>")
    return f"<details><summary>The map in words</summary><ul>{''.join(items)}</ul></details>"


def setup(app: Sphinx) -> dict:
    app.add_directive("course-map", CourseMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
