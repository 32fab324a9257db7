"""Finds out the device by itself, and names another one than it was told.

Loses: compare
"""

import torch


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        off = (logits(False, t) - logits(True, t)).abs().max().item()
        if not off <= tolerance:
            raise ValueError(f"off by {off} at {t}")
        uncached.append([])
        cached.append([])
        for _ in range(rounds):
            uncached[-1].append(seconds(False, t))
            cached[-1].append(seconds(True, t))
    name = "cuda" if torch.cuda.is_available() else "cpu"
    return name, list(lengths), uncached, cached
