r"""Deep stacks with pre-norm and post-norm, with and without warm-up (chapter 08).

One small and deep language model learns to write a number in English words that it has read in
Chinese numerals. The grid combines norm placement, warm-up, four or five learning rates
and three seeds. Nothing else differs between two arms: with one seed, initial weights and
batches are the same, no gradient is clipped, and there is no dropout.

It computes in float64: sums in another order then move the first steps by far less than
`benchmarks/record.py` allows, so that an arm begins in the same way on every machine.

``make results`` trains the grid and writes the record ``warmup``.

Source of the question: Xiong et al., *On Layer Normalization in the Transformer Architecture*,
2020, arXiv:2002.04745.
"""

import math
from typing import Any

import torch
from torch import Tensor

from lib.data import NumeralPairs, numeral_pairs, pad
from lib.sinusoidal import SinusoidalPosition
from lib.training import sequence_loss, shuffled_batches, teacher_forcing, train, warmup_cosine
from lib.transformer import LanguageModel

__all__ = ["arms", "guess_loss", "make_model", "run"]

# The peak learning rate. At post-norm's last one nothing is learned any more.
RATES = {
    "pre": (3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
    "post": (3e-4, 1e-3, 3e-3, 1e-2),
}
SEEDS = (0, 1, 2)
N_STEPS = 400
WARMUP = 100  # steps, where there is a warm-up
WINDOW = 20  # steps over which the training loss is averaged
BATCH = 16
LARGEST = 99_999  # of the numbers
N_VALID = 256  # numbers that no arm trains on
SIZES = {"d_model": 32, "n_layers": 12, "n_heads": 4, "d_ff": 128, "activation": "relu"}


def arms() -> list[dict[str, Any]]:
    """The grid: one dictionary of settings for each arm.

    ``placement`` is ``"pre"`` or ``"post"``, ``warmup`` a number of steps (0: none), ``rate`` the
    peak learning rate, ``seed`` determines initial weights and batches.
    """
    return [
        {"placement": placement, "warmup": warmup, "rate": rate, "seed": seed}
        for placement in ("pre", "post")
        for warmup in (WARMUP, 0)
        for rate in RATES[placement]
        for seed in SEEDS
    ]


def make_model(placement: str, seed: int, *, pairs: NumeralPairs) -> LanguageModel:
    """The model of an arm, before its first step; in float64.

    Weights are drawn in float32 whatever the default is: the same seed would draw others in
    float64.
    """
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        torch.manual_seed(seed)
        model = LanguageModel(
            len(pairs.source) + len(pairs.target),
            position=SinusoidalPosition(SIZES["d_model"]),
            norm_placement=placement,
            **SIZES,
        )
    finally:
        torch.set_default_dtype(usual)
    return model.double()


def encode(numbers: Tensor, pairs: NumeralPairs) -> tuple[Tensor, Tensor]:
    """Numerals followed by their words: ``(batch, length)`` tokens, and which are targets.

    The words' token numbers follow the numerals'. The first target token, ``<start>``, is given;
    the others and ``<end>`` count in the loss.
    """
    rows, roles = [], []
    for n in numbers.tolist():
        source = pairs.encode_source(n)
        target = [len(pairs.source) + token for token in pairs.encode_target(n)]
        rows.append(source + target)
        roles.append([1] * (len(source) + 1) + [2] * (len(target) - 1))  # 0 will be padding
    tokens, _ = pad(rows)
    return tokens, pad(roles)[0] == 2


def run(arm: dict[str, Any], n_steps: int | None = None) -> dict[str, Any]:
    """Train one arm.

    Args:
        arm: one of :func:`arms`.
        n_steps: stop after so many steps of the schedule; all of them when not given.

    Returns:
        ``train``: the training loss, in nats per token, averaged over ``WINDOW`` (20) steps, every
        ``WINDOW`` steps; ``largest``: its largest value at a step; ``valid``: the loss on numbers
        not trained on. ``None`` replaces a number that is not finite: JSON has no NaN.
    """
    n_steps = N_STEPS if n_steps is None else n_steps
    pairs = numeral_pairs(LARGEST)
    model = make_model(arm["placement"], arm["seed"], pairs=pairs)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    generator = torch.Generator().manual_seed(arm["seed"])

    def loss_of(model: LanguageModel, numbers: Tensor) -> Tensor:
        tokens, counts = encode(numbers, pairs)
        inputs, targets = teacher_forcing(tokens)
        # Padding is at the end, where no real token sees it, and does not count.
        return sequence_loss(model(inputs), targets, mask=counts[:, 1:])

    losses = train(
        model,
        (pairs.train[i] for i in shuffled_batches(len(pairs.train), BATCH, generator=generator)),
        loss_of,
        optimizer,
        n_steps=n_steps,
        rate=lambda s: arm["rate"] * warmup_cosine(s, warmup=arm["warmup"], total=N_STEPS),
    )
    with torch.no_grad():
        valid = loss_of(model, pairs.valid[:N_VALID]).item()
    parts = [losses[start : start + WINDOW] for start in range(0, len(losses), WINDOW)]
    return {
        "train": [_finite(sum(part) / len(part)) for part in parts],
        "largest": _finite(max(losses, key=lambda loss: (math.isnan(loss), loss))),
        "valid": _finite(valid),
    }


def guess_loss() -> float:
    """The loss, in nats per token, of guessing from token frequencies, without any input.

    A model that does not get below it has learned nothing from the numeral or the words before.
    """
    pairs = numeral_pairs(LARGEST)
    tokens, counts = encode(pairs.valid[:N_VALID], pairs)
    share = tokens[counts].bincount().double() / counts.sum()
    share = share[share > 0]
    return -(share * share.log()).sum().item()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
