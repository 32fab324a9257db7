"""Compares the distance of the two rows of logits with the tolerance.

Loses: compare
"""

# %% compare-answer
import torch


def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        distance = torch.linalg.vector_norm(logits(False, t) - logits(True, t)).item()
        if not distance <= tolerance:
            raise ValueError(f"{t} tokens: the logits are {distance} apart")
        slow, fast = [], []
        for _ in range(rounds):
            slow.append(seconds(False, t))
            fast.append(seconds(True, t))
        uncached.append(slow)
        cached.append(fast)
    return device, list(lengths), uncached, cached
