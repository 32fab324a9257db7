"""The directive ``course-picture``: what rotary position does, in one picture, computed by `lib`.

Each column is a key, each row one pair of a head's numbers. A hand shows how far the pair has
turned between key and query; what it adds to the score is its height. Below are the weights that
result from the sum of each column. The option ``alt`` describes the picture, and the content is the
caption::

    ```{course-picture}
    :alt: A field of clock hands ...
    Each column is a token ...
    ```

It uses the page's colours, so it works on light and dark pages.
"""

from html import escape

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TOKENS, PAIRS, BASE = 24, 8, 100.0
LENGTH = 1.2  # of each pair of query and key
CELL, HAND, LEFT, TOP = 26, 10, 92, 6  # SVG units
BARS = 90  # height of the largest weight
WIDTH, HEIGHT = LEFT + TOKENS * CELL + 8, TOP + PAIRS * CELL + BARS + 46


class CoursePicture(SphinxDirective):
    """Draw the picture with its caption."""

    has_content = True
    option_spec = {"alt": directives.unchanged_required}  # noqa: RUF012 (docutils' interface)

    def run(self) -> list[nodes.Node]:
        if not self.options.get("alt"):
            raise self.error("course-picture needs the option alt")
        from lib import rope

        self.env.note_dependency(rope.__file__)
        figure = nodes.container(classes=["course-picture"])
        figure += nodes.raw("", drawing(self.options["alt"]), format="html")
        self.state.nested_parse(self.content, self.content_offset, figure)
        return [figure]


def turned(positions: range, length: float):
    """The pairs (1, 0), times a length, turned to these positions: ``(TOKENS, 2 * PAIRS)``.

    Imported here, because a site without the picture does not need `lib`.
    """
    import torch
    from lib.rope import apply_rope, rope_frequencies, rope_tables

    x = length * torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(PAIRS)
    frequencies = rope_frequencies(2 * PAIRS, base=BASE)
    cos, sin = rope_tables(torch.tensor(positions), frequencies, dtype=torch.float64)
    return apply_rope(x.expand(TOKENS, -1), cos, sin)


def hands() -> list[list[list[float]]]:
    """Each key's pairs as the last token's query sees them: up and across, by token and pair."""
    return turned(range(1 - TOKENS, 1), 1.0).unflatten(-1, (PAIRS, 2)).tolist()


def weights() -> list[float]:
    """The attention weights of the last token's query, each token rotated by its position."""
    tokens = turned(range(TOKENS), LENGTH)
    return (tokens @ tokens[-1] / (2 * PAIRS) ** 0.5).softmax(dim=0).tolist()


def drawing(alt: str) -> str:
    """The SVG. A hand that points up adds to the score, one that points down takes away."""
    marks = []
    for n, pairs in enumerate(hands()):
        x = LEFT + CELL * (n + 0.5)
        for i, (up, across) in enumerate(pairs):
            y = TOP + CELL * (i + 0.5)
            kind = "adds" if up >= 0 else "takes"
            marks.append(
                f'<rect class="{kind}" opacity="{0.1 + 0.7 * abs(up):.2f}" '
                f'x="{x - CELL / 2 + 1:g}" y="{y - CELL / 2 + 1:g}" '
                f'width="{CELL - 2}" height="{CELL - 2}" rx="5"/>'
                f'<path d="M{x:g} {y:g}l{-HAND * across:.1f} {-HAND * up:.1f}"/>'
                f'<circle cx="{x:g}" cy="{y:g}" r="2"/>'
            )
    foot = TOP + PAIRS * CELL + 10 + BARS
    shares = weights()
    for n, share in enumerate(shares):
        height = max(BARS * share / max(shares), 1)
        marks.append(
            f'<rect class="adds" x="{LEFT + CELL * n + 3:g}" y="{foot - height:.1f}" '
            f'width="{CELL - 6}" '
            f'height="{height:.1f}"/>'
        )
    middle = LEFT + CELL * (TOKENS - 0.5)
    words = [
        (LEFT - 10, TOP + CELL * 0.5 + 6, "end", "fast"),
        (LEFT - 10, TOP + CELL * (PAIRS - 0.5) + 6, "end", "slow"),
        (LEFT - 10, foot, "end", "weight"),
        (LEFT, foot + 26, "start", "far back"),
        (middle + CELL / 2, foot + 26, "end", "query"),
    ]
    marks += [
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{text}</text>'
        for x, y, anchor, text in words
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(alt)}">{"".join(marks)}</svg>'
    )


def setup(app: Sphinx) -> dict:
    app.add_directive("course-picture", CoursePicture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
