"""For each claim of the page: another world, and the verdict that the claim gets in it.

Some patch ``lib``; most change the experiment, so that the claim's condition holds, or so that the
part of it which was true does not. Never is the comparison itself changed.
"""

import math
from collections.abc import Callable

import torch

from tests.course.execution import Perturbation
from tests.course.faults import transposed


def constant_losses(load: Callable) -> Callable:
    """A record in which no loss changes along the text."""
    return lambda name: _with_losses(load(name), lambda losses: [losses[1]] * len(losses))


def rising_losses(load: Callable) -> Callable:
    """A record in which every loss rises by a nat in each block."""
    return lambda name: _with_losses(load(name), lambda losses: [*map(float, range(len(losses)))])


def _with_losses(record: dict, change: Callable) -> dict:
    for run in record["arms"]:
        run["result"]["loss"] = change(run["result"]["loss"])
    return record


def to_the_end(_: Callable) -> Callable:
    """Wavelengths whose exponents go on to 1."""
    return lambda dim: 2 * math.pi * 1e4 ** (2 * (torch.arange(dim // 2) + 1) / dim)


def geometric(slopes: Callable) -> Callable:
    return lambda n_heads, **options: slopes(n_heads, rule="geometric", **options)


def sees_everything(mask: Callable) -> Callable:
    """Forget the causal mask."""
    return lambda *arguments, **options: torch.ones_like(mask(*arguments, **options))


def whole_text(_: Callable) -> Callable:
    """Normalize all numbers of a text together."""
    return lambda x, **_: (x - x.mean()) / x.std(correction=0)


def world(name: str, old: str, new: str) -> Perturbation:
    return Perturbation(name, replace=(old, new))


PERTURBATIONS = {
    1: (world("nothing is shuffled", "x[order]", "x"), "true here"),
    2: (
        world(
            "nobody may look at itself",
            "own = attention(x, x, x, return",
            "own = attention(x, x, x, mask=~torch.eye(5, dtype=torch.bool), return",
        ),
        "half true",
    ),
    3: (
        world("only codes that are added", ", RotaryPosition(8), AlibiPosition(1))", ",)"),
        "true here",
    ),
    4: (
        world(
            "they are left out, not zeroed",
            "attention(query, k_0, v_0)",
            "attention(query, k[:4], v[:4])",
        ),
        "half true",
    ),
    5: (
        world("one polarity", "attn_mask=mask)[0][:, :4]", "attn_mask=~mask)[0][:, :4]"),
        "true here",
    ),
    6: (
        world(
            "aligned at the bottom", "sdpa(last, k, v, is_causal=True)", "sdpa(last, k, v)"
        ),
        "true here",
    ),
    7: (world("the width of a head", "d_model**-0.5", "d_k**-0.5"), "half true"),
    8: (world("another variance", ": (q, k)", ": (3 * q, k)"), "wrong"),
    9: (world("keys of all lengths", "(3 * unit)", "keys"), "wrong"),
    10: (world("softmax", "scores.clamp_min(0)", "scores.exp()"), "true here"),
    11: (
        world("not tied", "lookup_error(4, tied=True)", "lookup_error(4, tied=False)"),
        "wrong",
    ),
    12: (world("a bend between", "(x @ w) @ w_1", "torch.relu(x @ w) @ w_1"), "true here"),
    13: (
        world("transposed", "x.view(2, 4, 3)", "x.view(4, 2, 3).transpose(0, 1)"),
        "true here",
    ),
    14: (world("the pair's exponent", "((2 * t + 1) / d)", "(2 * t / d)"), "half true"),
    15: (world("at position 1", ", 100 / w_i", ", 1 / w_i"), "half true"),
    16: (
        world("every pair slower", "angular_frequencies(512)", "angular_frequencies(64) / 1e4"),
        "true here",
    ),
    17: (
        Perturbation("exponents to 1", patch={"lib.sinusoidal.wavelengths": to_the_end}),
        "half true",
    ),
    18: (
        Perturbation("the model holds", patch={"lib.results.load": constant_losses}),
        "true here",
    ),
    19: (
        Perturbation("turned back", patch={"lib.rope.rope_matrix": transposed}),
        "true here",
    ),
    20: (
        world("content of mean 1", "= normal(20_000, 6", "= 1 + normal(20_000, 6"),
        "wrong",
    ),
    21: (
        world("one job", "torch.cat([one_back, three_back], dim=1)", "one_back"),
        "true here",
    ),
    22: (world("another factor", "w_q / 5**0.5", "w_q / 5"), "half true"),
    23: (world("counted from 1", "torch.arange(8)", "torch.arange(1, 9)"), "half true"),
    24: (
        world(
            "the other order",
            "turn(m).T @ turn(n), turn(m - n)",
            "turn(n).T @ turn(m), turn(m - n)",
        ),
        "true here",
    ),
    25: (world("the same key", "k + torch.stack", "k + 0 * torch.stack"), "true here"),
    26: (
        Perturbation("the model holds", patch={"lib.results.load": constant_losses}),
        "half true",
    ),
    27: (world("two near stretches", "alike[900:]", "alike[:50]"), "wrong"),
    28: (world("one layout", '"interleaved", "half"', '"half", "half"'), "true here"),
    29: (world("a smaller base", "base=1_000_000.0", "base=100.0"), "true here"),
    30: (world("v is left alone", "turn(v, p)", "v"), "half true"),
    31: (
        Perturbation("one formula for all", patch={"lib.alibi.alibi_slopes": geometric}),
        "half true",
    ),
    32: (
        Perturbation("no model holds", patch={"lib.results.load": rising_losses}),
        "wrong",
    ),
    33: (world("a narrow model", "d_model=64", "d_model=8"), "half true"),
    34: (
        world("no mask anywhere", "causal_mask(n, n) if causal else None", "None"),
        "true here",
    ),
    35: (world("all rows are wanted", "(6, 6))[5].sum()", "(6, 6)).sum()"), "true here"),
    36: (world("the right cache", "decode(1)", "decode(0)"), "true here"),
    37: (world("ridge 1", "300e12, 1e12", "1e12, 1e12"), "true here"),
    38: (world("the new tokens", "start += held ", "start += new "), "half true"),
    39: (
        world(
            "pre-norm's outputs",
            "sizes(post[24]) / sizes(post[4])",
            "sizes(pre[24]) / sizes(pre[4])",
        ),
        "wrong",
    ),
    40: (world("the norm's output", "left = block(x)", "left = block.self_norm(x)"), "true here"),
    41: (world("nearly cancelled", "lambda x: -x", "lambda x: -0.9 * x"), "true here"),
    42: (
        world(
            "divided by d",
            "by_7 = x.var(-1, keepdim=True)",
            "by_7 = x.var(-1, keepdim=True, correction=0)",
        ),
        "half true",
    ),
    43: (
        world(
            "one target",
            "sequence_loss(logits, targets)",
            "sequence_loss(logits[:, -1:], targets[:, -1:])",
        ),
        "true here",
    ),
    44: (
        Perturbation("no causal mask", patch={"lib.transformer.causal_mask": sees_everything}),
        "true here",
    ),
    45: (
        Perturbation("the text together", patch={"lib.norms.layer_norm": whole_text}),
        "true here",
    ),
    46: (world("one network", "x + layer_norm(branch)", "layer_norm(branch + x)"), "true here"),
    47: (world("the models of 2018", "year >= 2021", "year <= 2019"), "true here"),
    48: (world("nothing is added", "scores(word + codes)", "scores(word)"), "true here"),
    49: (
        world(
            "a linear state that keeps its size",
            "torch.tanh(state @ w + token)",
            "state @ torch.linalg.qr(w).Q + token",
        ),
        "half true",
    ),
    50: (
        world(
            "a layer that relates nothing",
            "normal(20, 20, seed=65)",
            "torch.block_diag(*[torch.eye(4)] * 5)",
        ),
        "true here",
    ),
    51: (
        world(
            "one vector",
            "= encoder(tokens)  ",
            "= encoder(tokens).mean(1)[:, None].expand(-1, 12, -1)  ",
        ),
        "half true",
    ),
    52: (world("one new token", "(model, tokens, 10)", "(model, tokens, 1)"), "true here"),
}  # fmt: skip
