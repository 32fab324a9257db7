r"""What each head of a language model attends to: weights, measures, and a figure to browse them.

:func:`observe` runs a model on a few texts and keeps every attention weight in whole percents.
:func:`scores` measures how much weight each head gives, on average, to one kind of key:

===============================  ==========================================================
kind of key, for the query m     heads that prefer it
===============================  ==========================================================
the previous token, m - 1        previous-token heads
the first token, 0               an *attention sink*: such a head hardly contributes here
the query's own token, m         a head that adds little from elsewhere
an earlier copy of the token     duplicate-token heads
the token after an earlier copy  *induction heads*: they find what came next the last time
===============================  ==========================================================

:class:`HeadBrowser` shows one measure of all heads, and the attention weights of one of them.

Source: Olsson et al., *In-context Learning and Induction Heads*, 2022, arXiv:2209.11895; Xiao et
al., *Efficient Streaming Language Models with Attention Sinks*, 2024, arXiv:2309.17453.
"""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

import torch
from torch import Tensor

from lib.bpe import Tokenizer
from lib.figures import text as word
from lib.interactive import Select, Slider, control_row, draw, enclose
from lib.results import HeadsText
from lib.svg import DEEPEST, Axes, Element
from lib.transformer import LanguageModel

__all__ = ["KINDS", "TEXTS", "HeadBrowser", "Observed", "equal_shares", "observe", "scores"]

TEXTS = (  # 16 tokens of SmolLM2 each
    "The keys to the old wooden cabinet in the kitchen are still missing this morning.",
    "When Anna and Peter went to the market, Peter gave some flowers to Anna.",
    "What is the capital of France? The capital of France is the city Paris.",
    "Words:" + 2 * " river candle tiger window paper music apple",
)
KINDS = (
    "the previous token",
    "the first token",
    "the query's own token",
    "an earlier copy of the token",
    "the token after an earlier copy",
)


@dataclass(frozen=True)
class Observed:
    """The attention weights of all heads on a few texts.

    Attributes:
        tokens: for each text its tokens; all texts have the same number.
        percent: integers 0 to 100, ``(texts, layers, heads, length, length)``. Each is rounded, so
            the sum of a row can differ from 100 by a few.
    """

    tokens: tuple[tuple[str, ...], ...]
    percent: Tensor

    def to_record(self) -> list[HeadsText]:
        """The same as JSON can hold it, for :meth:`from_record`."""
        return [
            {"tokens": list(tokens), "weights": [_encode(layer) for layer in layers]}
            for tokens, layers in zip(self.tokens, _triangle(self.percent), strict=True)
        ]

    @classmethod
    def from_record(cls, texts: Sequence[HeadsText]) -> "Observed":
        """The texts of a record (:class:`lib.results.HeadsRecord`)."""
        length = len(texts[0]["tokens"])
        packed = [[list(base64.b64decode(layer)) for layer in text["weights"]] for text in texts]
        lower = torch.tensor(packed, dtype=torch.uint8)  # (texts, layers, heads * weights)
        lower = lower.unflatten(-1, (-1, length * (length + 1) // 2))
        percent = lower.new_zeros(*lower.shape[:-1], length, length)
        rows, columns = torch.tril_indices(length, length)
        percent[..., rows, columns] = lower
        return cls(tuple(tuple(text["tokens"]) for text in texts), percent)


def _triangle(matrices: Tensor) -> Tensor:
    """The lower triangle of each matrix, row by row: ``(..., length * (length + 1) / 2)``."""
    rows, columns = torch.tril_indices(*matrices.shape[-2:])
    return matrices[..., rows, columns]


def _encode(numbers: Tensor) -> str:
    return base64.b64encode(bytes(numbers.flatten().tolist())).decode()


@torch.no_grad()
def observe(model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[str] = TEXTS) -> Observed:
    """Run a language model on texts, and keep the weights of all its heads.

    Args:
        model: as from :func:`lib.smollm.load`.
        tokenizer: that of the model.
        texts: of one number of tokens, so that the cells of a figure keep their places.

    Raises:
        ValueError: if the numbers of tokens differ.
    """
    ids = [tokenizer.encode(each) for each in texts]
    if len({len(each) for each in ids}) > 1:
        raise ValueError(f"texts need equal numbers of tokens, got {[len(each) for each in ids]}")
    _, weights = model(torch.tensor(ids), return_weights=True)
    stacked = torch.stack(weights.self_attention, dim=1)  # (texts, layers, heads, N, N)
    tokens = tuple(tuple(tokenizer.decode([token]) for token in each) for each in ids)
    return Observed(tokens, (100 * stacked).round().to(torch.uint8))


def targets(tokens: Sequence[str]) -> Tensor:
    """Which keys are of which kind: boolean ``(kinds, length, length)``.

    The first two queries count for no kind: for them the previous token, or the query's own, is
    the first one.
    """
    n = torch.arange(len(tokens))  # (N,)
    m = n[:, None]  # (N, 1)
    same = torch.tensor([[a == b for b in tokens] for a in tokens])  # (N, N)
    after = same.roll(1, dims=1)  # its first column would be about the last token
    kinds = [n == m - 1, (n == 0) & (m > 0), n == m, same & (n < m), after & (0 < n) & (n < m)]
    return torch.stack(kinds) & (m >= 2)  # (kinds, N, N)


def scores(observed: Observed) -> Tensor:
    """The mean weight of each head on each kind of key: ``(kinds, layers, heads)``, 0 to 1.

    It is taken over the queries, of all texts together, that have keys of this kind. A kind that
    no query has gives 0.
    """
    return _means(observed.tokens, observed.percent / 100)


def equal_shares(observed: Observed) -> Tensor:
    """What :func:`scores` would be if each query gave its keys equal weights: ``(kinds,)``."""
    n_texts, length = len(observed.tokens), len(observed.tokens[0])
    equal = torch.ones(length, length).tril() / torch.arange(1, length + 1)[:, None]  # (N, N)
    return _means(observed.tokens, equal.expand(n_texts, 1, 1, length, length))[:, 0, 0]


def _means(tokens: Sequence[Sequence[str]], weights: Tensor) -> Tensor:
    counted = torch.stack([targets(each) for each in tokens])  # (texts, kinds, N, N)
    queries = counted.any(dim=-1).sum(dim=(0, 2)).clamp(min=1)  # (kinds,)
    total = torch.einsum("tkmn,tlhmn->klh", counted.to(weights.dtype), weights)
    return total / queries[:, None, None]  # (kinds, layers, heads)


MOST_KEYS = 4  # that the line beside the picture names; the picture's description has them all
WORDS = {  # the script fills them in too
    "head": "Layer {layer}, head {head} gives {kind} {score}% of its weight on average. Equal "
    "weights would give it {equal}%.",
    "row": "Query {m} “{token}” attends to {keys}.",
    "key": "{n} “{token}” {percent}%",
    "picture": "Two maps. The upper one has a cell for each layer and head, deeper blue for more "
    "weight on {kind}; layer {layer}, head {head} is marked. The lower one has the attention "
    "weights of this head. In its marked row, query {m} “{token}” attends to {keys}.",
}
LEGEND = (
    "Weights are in percent, rounded to whole numbers, so a row can miss 100 by a few. In the "
    "lower map the colour follows the square root of the weight, to make small ones visible. "
    "Orange frames mark the keys that the measure counts."
)
WIDTH, UPPER = 480, 208  # of the picture, and the height of its upper map, in SVG units


class HeadBrowser:
    """All heads on a map of one measure, and the attention weights of the head that is chosen.

    Like :class:`lib.interactive.SliderFigure` it is one piece of HTML that needs neither a library
    nor a kernel, and a notebook shows it as a cell's value. Its script looks up the percents of
    ``observed``: a frame for each text, measure, head and query would be far too many.

    Args:
        observed: two texts or more, two layers, heads and tokens or more.
        name: as of a :class:`lib.interactive.SliderFigure`.
        title: likewise.
        text: the place of the text that is shown first.
        kind: the measure that is shown first, one of `KINDS`, with the head that has its highest
            value. The query is the last one.
        max_bytes: the largest size of the HTML, in bytes of UTF-8.

    Attributes:
        name: as given.
        alt: the description of what is shown first.
        html: the whole figure.

    Raises:
        ValueError: if there is no such text or measure, the name cannot be an id, or the HTML is
            too large.
    """

    def __init__(
        self,
        observed: Observed,
        *,
        name: str,
        title: str,
        text: int = 0,
        kind: str = KINDS[0],
        max_bytes: int = 300_000,
    ) -> None:
        n_texts, n_layers, n_heads, length, _ = observed.percent.shape
        if text not in range(n_texts):
            raise ValueError(f"there is no text {text}: they go from 0 to {n_texts - 1}")
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
        measured = scores(observed).flatten(1)  # (kinds, layers * heads)
        percents = (100 * measured).round().int().tolist()
        order = measured.argsort(dim=1, descending=True, stable=True).tolist()
        equal = (100 * equal_shares(observed)).round().int().tolist()
        tokens = [[each.strip() for each in one] for one in observed.tokens]
        counted = [
            [each.nonzero().flatten().tolist() for each in _triangle(targets(one))]
            for one in observed.tokens
        ]

        # What is shown first. The script makes everything else in the same way.
        k, m = KINDS.index(kind), length - 1
        chosen = order[k][0]
        layer, head = divmod(chosen, n_heads)
        weights = _triangle(observed.percent[text, layer, head]).tolist()
        row = weights[-length:]
        words = {name: word(template) for name, template in WORDS.items()}
        keys = [
            words["key"].format(n=n, token=token, percent=percent)
            for n, (token, percent) in enumerate(zip(tokens[text], row, strict=True))
        ]
        most = [n for n in sorted(range(length), key=lambda n: -row[n]) if row[n]][:MOST_KEYS]
        facts = {"layer": layer, "head": head, "kind": word(kind), "m": m, "token": tokens[text][m]}
        facts |= {"score": percents[k][chosen], "equal": equal[k]}
        self.name = name
        self.alt = words["picture"].format(**facts, keys=", ".join(keys))

        upper = _upper(percents[k], n_layers, chosen)
        lower, height = _lower(weights, tokens, text, m, counted[text][k])
        controls = [
            Select("text", "text", ["".join(each).strip() for each in observed.tokens]),
            Select("kind", "measure", KINDS, start=kind),
            Slider("rank", "rank", range(1, len(order[k]) + 1)),
            Slider("layer", "layer", range(n_layers), start=layer),
            Slider("head", "head", range(n_heads), start=head),
            Slider("query", "query", range(length), start=m),
        ]
        self.html = enclose(
            name,
            title,
            [
                f'<div class="heads"><svg role="img" viewBox="0 0 {WIDTH} {height:g}" '
                f'aria-label="{escape(self.alt)}">{upper}{lower}</svg><div>',
                *map(control_row, controls),
                f"<output>{escape(words['head'].format(**facts))}</output> <output>",
                escape(words["row"].format(**facts, keys=", ".join(keys[n] for n in most))),
                f"</output><p>{escape(word(LEGEND))}</p></div></div>",
            ],
            width=1000,
            style=STYLE,
            script=SCRIPT,
            data={
                "tokens": tokens,
                "weights": [_encode(each) for each in _triangle(observed.percent)],
                "scores": percents,
                "order": order,
                "equal": equal,
                "counted": counted,
                "depths": [_depth(percent) for percent in range(101)],
                "kinds": [word(each) for each in KINDS],
                "words": words,
                "most": MOST_KEYS,
            },
            max_bytes=max_bytes,
        )

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<HeadBrowser {self.name}. {self.alt}>"


def _upper(percents: Sequence[int], n_layers: int, chosen: int) -> str:
    """The map of all heads as SVG; the script finds its groups by name."""
    n_heads = len(percents) // n_layers
    axes = Axes(
        x=(-0.5, n_layers - 0.5),
        y=(n_heads - 0.5, -0.5),
        x_label="layer",
        y_label="head",
        x_ticks={each: str(each) for each in range(0, n_layers, 5)},
        y_ticks={each: str(each) for each in range(n_heads)},
        box=(0, 0, WIDTH, UPPER),
    )
    by_head = axes.cells([[0] * n_layers] * n_heads, value_format=None)
    cells = []
    for i, percent in enumerate(percents):
        layer, head = divmod(i, n_heads)
        place = by_head[head * n_layers + layer].attributes
        cells.append(Element("rect", {**place, "fill-opacity": f"{percent / 100:g}"}))
    frame = {key: cells[chosen].attributes[key] for key in ("x", "y", "width", "height")}
    marks = [Element("rect", {"class": "line s", "stroke-width": 3, **frame})]
    return draw(axes.outline()) + _group("map", cells) + _group("chosen", marks)


def _lower(
    weights: Sequence[int], tokens: list[list[str]], text: int, m: int, counted: Sequence[int]
) -> tuple[str, float]:
    """The map of one head's weights as SVG, in the same way, and where it ends."""
    shown, length, row = tokens[text], len(tokens[text]), weights[m * (m + 1) // 2 :][: m + 1]
    longest = max(len(token) for one in tokens for token in one)
    unit = (WIDTH - 48 - 9 * longest) / length
    tallest = 6 + max(9 * len(each) - n * unit for one in tokens for n, each in enumerate(one))
    axes = Axes(
        x=(-0.5, length - 0.5),
        y=(length - 0.5, -0.5 - tallest / unit),
        x_label="key, position n",
        y_label="query, position m",
        y_ticks=dict.fromkeys(range(length), "x" * longest),  # room for the tokens of every text
        box=(0, UPPER, WIDTH, length * unit + tallest + 46),
    )
    outline = axes.outline()
    ticks = [each for each in outline if each.attributes.get("text-anchor") == "end"]
    others = [each for each in outline if each not in ticks]
    rows = [Element("text", t.attributes, token) for t, token in zip(ticks, shown, strict=True)]

    # Cells of the lower triangle, and above each column the token of its key.
    square = axes.cells([[0] * length] * length, value_format=None)
    cells, numbers, columns = [], [], []
    for i, (q, n) in enumerate(torch.tril_indices(length, length).T.tolist()):
        style = {"class": _cell_class(i in counted), "fill-opacity": f"{_depth(weights[i]):g}"}
        cells.append(Element("rect", {**square[q * length + n].attributes, **style}))
    for n, token in enumerate(shown):
        cell = cells[n * (n + 1) // 2 + n].attributes
        x, y = float(cell["x"]) + unit / 2, float(cell["y"])
        place = f"translate({x + 5:.1f} {y - 4:.1f})rotate(-90)"
        columns.append(Element("text", {"transform": place}, token))
        number = {"x": f"{x:.1f}", "y": rows[m].attributes["y"], "text-anchor": "middle"}
        numbers.append(Element("text", number, str(row[n]) if n <= m else ""))
    first, last = (cells[m * (m + 1) // 2 + n].attributes for n in (0, m))
    across = round(float(last["x"]) + float(last["width"]) - float(first["x"]), 1)
    frame = {
        "x": first["x"],
        "y": first["y"],
        "height": first["height"],
        "width": f"{round(across, 1):g}",
    }
    marks = [Element("rect", {"class": "line s", "stroke-width": 2, **frame})]
    groups = {"weights": cells, "row": marks, "numbers": numbers, "queries": rows, "keys": columns}
    drawn = "".join(_group(name, elements) for name, elements in groups.items())
    return draw(others) + drawn, axes.box[1] + axes.box[3]


def _cell_class(counted: bool) -> str:
    return "cell s0 counted" if counted else "cell s0"


def _depth(percent: int) -> float:
    """The opacity of a weight: it grows with the square root."""
    return round(DEEPEST * math.sqrt(percent / 100), 2)


def _group(name: str, elements: Sequence[Element]) -> str:
    return f'<g data-group="{name}">{draw(elements)}</g>'


STYLE = files("lib").joinpath("heads.css").read_text(encoding="utf-8").strip()
SCRIPT = files("lib").joinpath("heads.js").read_text(encoding="utf-8").strip()
