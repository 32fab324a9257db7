"""Also refuses logits within the tolerance if another token has the largest.

Loses: compare
"""

from collections.abc import Callable, Sequence

import torch


# %% compare-answer
def compare(
    lengths: Sequence[int],
    logits: Callable[[bool, int], torch.Tensor],
    seconds: Callable[[bool, int], float],
    rounds: int,
    device: str,
    tolerance: float = 1e-3,
) -> tuple[str, list[int], list[list[float]], list[list[float]]]:
    uncached, cached = [], []
    for t in lengths:
        plain, quick = logits(False, t), logits(True, t)
        largest = (plain - quick).abs().max().item()
        if not largest <= tolerance or plain.argmax().item() != quick.argmax().item():
            raise ValueError(f"the two ways disagree at length {t}: {largest}")
        slow_times, fast_times = [], []
        for _ in range(rounds):
            slow_times.append(seconds(False, t))
            fast_times.append(seconds(True, t))
        uncached.append(slow_times)
        cached.append(fast_times)
    return device, list(lengths), uncached, cached
