"""The directive ``course-picture``: what rotary position does, in one picture, computed by `lib`.

Each column is a key, each row one pair of a head's numbers. A hand shows how far the pair has
turned between key and query; what it adds to the score is its height. Below stand the weights that
the sum of each column gives. Its option ``alt`` says so to somebody who does not see it, and its
content is the caption::

    ```{course-picture}
    :alt: A field of clock hands ...
    Each column is a token ...
    ```

The colours are the page's own, so that it is right on light and dark pages.
"""

from html import escape

import torch
from docutils import nodes
from docutils.parsers.rst import directives
from lib import rope
from lib.rope import apply_rope, rope_frequencies, rope_tables
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TOKENS, PAIRS, BASE = 24, 8, 100.0
LENGTH = 2.0  # squared, of each pair of query and key
CELL, HAND, LEFT, TOP = 26, 11, 80, 6  # SVG units
BARS = 84  # height of the largest weight
WIDTH, HEIGHT = LEFT + TOKENS * CELL + 8, TOP + PAIRS * CELL + BARS + 46


class CoursePicture(SphinxDirective):
    """Draw the picture with its caption."""

    has_content = True
    option_spec = {"alt": directives.unchanged_required}  # noqa: RUF012 (docutils' interface)

    def run(self) -> list[nodes.Node]:
        if not self.options.get("alt"):
            raise self.error("course-picture needs the option alt")
        self.env.note_dependency(rope.__file__)
        figure = nodes.container(classes=["course-picture"])
        figure += nodes.raw("", drawing(self.options["alt"]), format="html")
        self.state.nested_parse(self.content, self.content_offset, figure)
        return [figure]


def turned_pairs() -> torch.Tensor:
    """The hands: ``(TOKENS, PAIRS, 2)``, each key's pairs as the last token's query sees them."""
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(PAIRS)
    cos, sin = tables(torch.arange(TOKENS) - (TOKENS - 1))
    return apply_rope(x.expand(TOKENS, -1), cos, sin).unflatten(-1, (PAIRS, 2))


def weights() -> torch.Tensor:
    """What the last token's query pays to each key: ``(TOKENS,)``, from keys turned one by one."""
    dim = 2 * PAIRS
    x = LENGTH**0.5 * torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(PAIRS)
    turned = apply_rope(x.expand(TOKENS, -1), *tables(torch.arange(TOKENS)))
    return torch.softmax(turned @ turned[-1] / dim**0.5, dim=0)


def tables(positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    frequencies = rope_frequencies(2 * PAIRS, base=BASE)
    return rope_tables(positions, frequencies, dtype=torch.float64)


def drawing(alt: str) -> str:
    """The SVG. A hand that points up adds to the score, one that points down takes away."""
    marks = []
    for n, hands in enumerate(turned_pairs().tolist()):
        x = LEFT + CELL * (n + 0.5)
        for i, (up, across) in enumerate(hands):
            y = TOP + CELL * (i + 0.5)
            kind = "adds" if up >= 0 else "takes"
            marks.append(
                f'<path class="{kind}" opacity="{0.35 + 0.65 * abs(up):.2f}" '
                f'd="M{x:g} {y:g}l{-HAND * across:.1f} {-HAND * up:.1f}"/>'
            )
    foot = TOP + PAIRS * CELL + 10 + BARS
    shares = weights()
    for n, share in enumerate((shares / shares.max()).tolist()):
        height = max(BARS * share, 1)
        marks.append(
            f'<rect x="{LEFT + CELL * n + 4:g}" y="{foot - height:.1f}" width="{CELL - 8}" '
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
