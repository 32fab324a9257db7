r"""Train short, test long: the grid of chapter 07, one small model under every position scheme.

A causal character model is trained on windows of `TRAIN_LENGTH` tokens and evaluated on windows of
`TEST_LENGTH`. `benchmarks.record` runs the grid and writes the record ``extrapolation``.

Conventions:

- Losses are cross-entropies in nats per character, means over the *same targets* at every block
  of positions (``eq-block-loss``, chapter 07). Windows overlap: each begins `BLOCK` tokens
  after the one before, so each target occurs once in every block of positions.
- Block b holds the positions from b · `BLOCK` to (b + 1) · `BLOCK` − 1. The blocks below
  `TRAIN_LENGTH` occurred in training. The last of them gives the loss of a model whose context is
  cut to the training length and moved on by `BLOCK` tokens at a time.
- Where a scheme has no such position, the loss is ``None``.
- All arms of a seed begin with the same weights, except those of the position scheme, and see the
  same batches in the same order.

Source of the question: Press et al., *Train Short, Test Long*, 2021, arXiv:2108.12409.
"""

import hashlib
from functools import cache
from itertools import repeat

import torch
from torch import Tensor
from torch.nn import functional as F

from lib.data import TextCorpus, random_windows, text_corpus
from lib.position import Position
from lib.rope import LinearScaling, NTKScaling, RotaryPosition, YarnScaling
from lib.schemes import ModelSizes, make_position
from lib.training import sequence_loss, teacher_forcing, train, warmup_cosine
from lib.transformer import LanguageModel

__all__ = [
    "BLOCK",
    "SCHEMES",
    "TEST_LENGTH",
    "TOLERANCE",
    "TRAIN_LENGTH",
    "arms",
    "block_losses",
    "build",
    "corpus_hash",
    "distant_attention",
    "fit",
    "losses_by_block",
    "run",
    "variants",
]

TRAIN_LENGTH, TEST_LENGTH, BLOCK = 64, 512, 32  # tokens
D_MODEL, N_LAYERS, N_HEADS = 64, 2, 4
HEAD_DIM = D_MODEL // N_HEADS
BATCH, STEPS, WARMUP, RATE, CLIP = 32, 1000, 50, 3e-3, 1.0
SEEDS = (0, 1, 2)
TARGET_BLOCKS = 400  # blocks of `BLOCK` targets on which every loss is measured
ATTENTION_WINDOWS = 16  # in which attention weights are averaged
TOLERANCE = 0.1  # nats; a model that rises by more past `TRAIN_LENGTH` breaks (``def-holds``)

SIZES = ModelSizes(D_MODEL, N_HEADS, HEAD_DIM, max_len=TRAIN_LENGTH)
SCHEMES: dict[str, dict[str, int]] = {  # of those in lib.schemes, with their options
    "none": {},
    "learned": {},
    "sinusoidal": {},
    "shaw": {"max_distance": 16},
    "transformer-xl": {},
    "t5": {"num_buckets": 16, "max_distance": 32},
    "rope": {},
    "alibi": {},
    # T5 again: the largest distance of training, 63, falls short of its last buckets
    "t5-wide": {"num_buckets": 16, "max_distance": 256},
}


def arms() -> list[dict]:
    """The grid: every scheme with every seed."""
    return [
        {"scheme": scheme, "seed": seed, "steps": STEPS} for scheme in SCHEMES for seed in SEEDS
    ]


@cache
def corpus() -> TextCorpus:
    """The text, read once."""
    return text_corpus()


@cache
def corpus_hash() -> str:
    """A hash of the text. Python's help topics differ a little between its versions."""
    text = corpus()
    parts = (text.train.tolist(), text.valid.tolist(), text.vocabulary.symbols)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def build(scheme: str, seed: int) -> LanguageModel:
    """Make the model of an arm, not trained.

    Args:
        scheme: a name in `SCHEMES`.
        seed: decides the weights.

    Raises:
        ValueError: if the scheme is unknown.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}, there are {', '.join(SCHEMES)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        position = make_position(scheme.removesuffix("-wide"), SIZES, **SCHEMES[scheme])
        torch.manual_seed(seed)  # so that what the scheme drew changes no other weight
        return LanguageModel(
            len(corpus().vocabulary), D_MODEL, N_LAYERS, N_HEADS, position=position
        )


def variants(scheme: str) -> dict[str, Position | int]:
    """Other ways to evaluate a trained model at length, without training it again.

    Returns:
        Name → a scheme that replaces the trained one; or a number, the largest position
        there is: it replaces all later ones.
    """
    if scheme == "learned":
        return {"clamped": TRAIN_LENGTH - 1}
    if scheme != "rope":
        return {}
    scalings = {}
    for factor in (2, TEST_LENGTH // TRAIN_LENGTH):
        for name, scaling in (
            ("interpolation", LinearScaling(factor)),
            ("ntk", NTKScaling(factor)),
            ("yarn", YarnScaling(factor, original_max_len=TRAIN_LENGTH)),
        ):
            scalings[f"{name} {factor}"] = RotaryPosition(HEAD_DIM, scaling=scaling)
    return scalings


def losses_by_block(
    model: LanguageModel,
    tokens: Tensor,
    *,
    length: int,
    block: int,
    first: int,
    n_targets: int,
    largest: int | None = None,
    batch: int = 8,
) -> Tensor:
    r"""Measure the loss on the same targets in every block of positions (``eq-block-loss``).

    Target block t holds the tokens that follow tokens ``first + t * block`` and the
    ``block - 1`` after it. For block b of positions its loss is taken from the window that
    begins at token ``first + (t - b) * block``.

    Args:
        model: scores the next token.
        tokens: the text, ``(n,)``.
        length: tokens per window, a multiple of ``block``.
        block: positions per block.
        first: where the targets' inputs begin; at least ``length - block``, so that even the last
            block has its whole context.
        n_targets: number of target blocks.
        largest: positions above it are replaced by it.
        batch: windows at a time.

    Returns:
        ``(length / block, n_targets)``: mean loss over target block t at block b.

    Raises:
        ValueError: if the blocks do not fill a window, or the text is too short on one side.
    """
    if block < 1 or length < block or length % block:
        raise ValueError(f"length={length} must be a multiple of block={block}, both at least 1")
    end = first + (n_targets - 1) * block + length + 1  # of the last window
    if first < length - block or n_targets < 1 or end > len(tokens):
        raise ValueError(
            f"first={first} and n_targets={n_targets}: windows of {length} must begin at token 0 "
            f"or later and end within {len(tokens)} tokens, the first would begin at "
            f"{first + block - length} and the last end at {end}"
        )
    n_blocks = length // block
    starts = first + block * torch.arange(1 - n_blocks, n_targets)  # (n_windows,)
    windows = tokens[starts.unsqueeze(1) + torch.arange(length + 1)]  # (n_windows, length + 1)
    positions = torch.arange(length).unsqueeze(0)
    if largest is not None:
        positions = positions.clamp(max=largest)
    losses = []
    with torch.no_grad():
        for rows in windows.split(batch):
            inputs, targets = teacher_forcing(rows)
            logits = model(inputs, positions=positions)  # (batch, length, vocab_size)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
            losses.append(loss.view(-1, n_blocks, block).mean(dim=-1))
    by_window = torch.cat(losses)  # (n_windows, n_blocks)
    b = torch.arange(n_blocks).unsqueeze(1)
    window = torch.arange(n_targets) + n_blocks - 1 - b  # (n_blocks, n_targets)
    return by_window[window, b]


def distant_attention(
    model: LanguageModel, tokens: Tensor, *, length: int, distance: int, block: int, n_windows: int
) -> tuple[Tensor, Tensor]:
    """Measure how much of the attention goes to keys far away, and over how many it is spread.

    Args:
        model: the trained model.
        tokens: the text, ``(n,)``; windows are spread evenly over it.
        length: tokens per window.
        distance: keys at this distance or farther count.
        block: the last ``block`` queries of each window are averaged.
        n_windows: number of windows.

    Returns:
        Two tensors ``(n_layers, n_heads)``, means over queries and windows: the share of the
        weight that those keys have together, between 0 and 1; and the entropy, in nats, of their
        weights divided by that share. It is log(M) where M keys have equal weights, and less the
        fewer keys are picked out. A query whose share underflows to 0 counts with entropy 0.

    Raises:
        ValueError: if the text is shorter than a window.
    """
    if len(tokens) < length:
        raise ValueError(f"a window of length={length} does not fit in {len(tokens)} tokens")
    starts = torch.linspace(0, len(tokens) - length, n_windows).long()
    query, key = torch.arange(length).unsqueeze(1), torch.arange(length)
    far = (query - key >= distance)[-block:]  # (block, length)
    share, entropy = 0.0, 0.0
    with torch.no_grad():
        for start in starts.tolist():
            _, weights = model(tokens[None, start : start + length], return_weights=True)
            layers = torch.stack(weights.self_attention)  # (n_layers, 1, n_heads, length, length)
            weight = layers[:, 0, :, -block:].double() * far
            total = weight.sum(dim=-1)  # (n_layers, n_heads, block)
            share = share + total.mean(dim=-1)
            part = weight / total.clamp_min(torch.finfo(total.dtype).tiny).unsqueeze(-1)
            entropy = entropy - torch.xlogy(part, part).sum(dim=-1).mean(dim=-1)
    return share / n_windows, entropy / n_windows


def run(arm: dict, n_steps: int | None = None) -> dict:
    """Train one arm and measure it: the result of :func:`fit`."""
    return fit(arm, n_steps)[1]


def fit(arm: dict, n_steps: int | None = None) -> tuple[LanguageModel, dict]:
    """Train one arm and measure it.

    Args:
        arm: one of :func:`arms`.
        n_steps: stop after so many steps; the schedule stays that of ``arm["steps"]``.

    Returns:
        The trained model, and a dictionary of what was measured. It has ``corpus``, a hash of the
        text; ``train_loss``, the mean of the last 50 steps; ``loss``, by block; ``rise_error``, the
        standard error, over blocks of targets, of each block's loss minus that of the last block
        seen in training; ``variants``, name → ``loss`` and ``rise_error``; ``distant_share`` and
        ``distant_entropy``, by layer and head (:func:`distant_attention`), of keys farther away
        than any in training.

    Raises:
        ValueError: if the scheme is unknown or there is nothing to do.
    """
    text, steps = corpus(), arm["steps"]
    model = build(arm["scheme"], arm["seed"])
    generator = torch.Generator().manual_seed(arm["seed"])
    batches = (
        random_windows(text.train, BATCH, TRAIN_LENGTH + 1, generator=generator)
        for _ in repeat(None)
    )

    def loss_fn(model: LanguageModel, batch: Tensor) -> Tensor:
        inputs, targets = teacher_forcing(batch)
        return sequence_loss(model(inputs), targets)

    losses = train(
        model,
        batches,
        loss_fn,
        torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01),
        n_steps=steps if n_steps is None else n_steps,
        rate=lambda step: RATE * warmup_cosine(step, warmup=WARMUP, total=steps, floor=0.05),
        clip=CLIP,
    )
    late = losses[-50:]
    result = {"corpus": corpus_hash(), "train_loss": round(sum(late) / len(late), 5)}
    result |= _measure(model, text.valid)
    own, result["variants"] = model.position, {}
    for name, change in variants(arm["scheme"]).items():
        if isinstance(change, int):
            result["variants"][name] = _measure(model, text.valid, largest=change)
        else:
            model.position = change
            result["variants"][name] = _measure(model, text.valid)
    model.position = own
    if own.max_len is None:
        measured = distant_attention(
            model,
            text.valid,
            length=TEST_LENGTH,
            distance=TRAIN_LENGTH,
            block=BLOCK,
            n_windows=ATTENTION_WINDOWS,
        )
        for name, values in zip(("distant_share", "distant_entropy"), measured, strict=True):
            result[name] = [[round(x, 5) for x in layer] for layer in values.tolist()]
    return model, result


def block_losses(model: LanguageModel) -> list[float | None]:
    """The ``loss`` of a result, for a model of :func:`build` with any weights."""
    return _measure(model, corpus().valid)["loss"]


def _measure(model: LanguageModel, tokens: Tensor, largest: int | None = None) -> dict:
    """The part of a result that comes from :func:`losses_by_block`."""
    reach = model.position.max_len
    length = TEST_LENGTH if reach is None or largest is not None else reach
    losses = losses_by_block(
        model,
        tokens,
        length=length,
        block=BLOCK,
        first=TEST_LENGTH - BLOCK,
        n_targets=TARGET_BLOCKS,
        largest=largest,
    )  # (n_blocks, n_targets)
    rise = losses - losses[TRAIN_LENGTH // BLOCK - 1]
    error = rise.std(dim=1) / losses.shape[1] ** 0.5
    missing = [None] * ((TEST_LENGTH - length) // BLOCK)
    return {
        "loss": [round(x, 5) for x in losses.mean(dim=1).tolist()] + missing,
        "rise_error": [round(x, 5) for x in error.tolist()] + missing,
    }
