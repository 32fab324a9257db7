"""Time per new token as the context grows, with and without the cache.

``python -m benchmarks.growth``: a forward over t tokens (no cache) against a step with t tokens
cached, in turn at each length, with the exponent that fits each curve beside the prediction
from the operations counted: 2Nt + 4Ldt² without the cache, 2N + 4Ldt with it (N weights in L
layers of width d; chapter 10). Both compute logits for the last token only; these are
not counted. Where a step waits for memory or for Python instead of arithmetic, the measured
exponent stays below the prediction. The shortest of the repeated calls counts.
"""

import math

import torch

from benchmarks.llama import alone
from benchmarks.machine import Table, describe, in_turn

SIZES = [(128, 4), (1536, 12)]  # width, layers
LENGTHS = [16, 32, 64, 128, 256, 512, 1024, 2048]


def exponent(lengths: list[int], values: list[float]) -> float:
    """The slope of log value over log length, by least squares."""
    x = [math.log(length) for length in lengths]
    y = [math.log(value) for value in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def operations(t: int, n_weights: int, width: int, n_layers: int) -> tuple[int, int]:
    """Operations for the token that follows t - 1 others: without the cache, with it."""
    attention = 4 * n_layers * width
    return 2 * n_weights * t + attention * t * t, 2 * n_weights + attention * t


@torch.no_grad()
def curves(width: int, n_layers: int, lengths: list[int]) -> tuple[list[float], list[float], int]:
    """Seconds per token at each length, without and with the cache, and the blocks' weights."""
    model = alone(width, n_layers)
    tokens = torch.randint(1_000, (1, lengths[-1]), generator=torch.Generator().manual_seed(1))
    state = model.decode_state(1, lengths[-1])
    full, cached = [], []
    for length in lengths:
        model(tokens[:, state.length : length - 1], state=state, last_only=True)

        def step(length=length):
            state.truncate(length - 1)
            return model(tokens[:, length - 1 : length], state=state)

        def whole(length=length):
            return model(tokens[:, :length], last_only=True)

        difference = (step() - whole()).abs().max().item()  # also warms both up
        if difference > 1e-3:
            raise SystemExit(f"length {length}: cached and full logits differ by {difference}")
        rounds = 15 if width * length < 2**18 else 3
        seconds = in_turn({"full": whole, "cached": step}, rounds)
        full.append(min(seconds["full"]))
        cached.append(min(seconds["cached"]))
    return full, cached, sum(p.numel() for p in model.blocks.parameters())


def main() -> None:
    print(f"time per token as the context grows; {describe()}")
    for width, n_layers in SIZES:
        full, cached, n = curves(width, n_layers, LENGTHS)
        print(f"\nwidth {width}, {n_layers} layers, {n / 1e6:.1f} M weights\n")
        table = Table("length", "full ms", "cached ms", "ratio")
        for length, a, b in zip(LENGTHS, full, cached, strict=True):
            table.row(str(length), f"{a * 1e3:.2f}", f"{b * 1e3:.2f}", f"{a / b:.1f}")
        predicted = zip(*(operations(t, n, width, n_layers) for t in LENGTHS), strict=True)
        without, with_cache = (exponent(LENGTHS, list(counts)) for counts in predicted)
        print(
            f"\nexponents, measured (predicted): without {exponent(LENGTHS, full):.2f} "
            f"({without:.2f}), with {exponent(LENGTHS, cached):.2f} ({with_cache:.2f})"
        )


if __name__ == "__main__":
    main()
