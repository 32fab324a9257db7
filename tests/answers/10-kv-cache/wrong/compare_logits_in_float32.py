"""Converts the logits of both ways to float32 before it compares them.

Loses: compare-precision
"""

import torch


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        off = (logits(False, t).to(torch.float32) - logits(True, t).to(torch.float32)).abs().max()
        if not off <= tolerance:
            raise ValueError(f"the logits differ at t = {t}")
        uncached.append([])
        cached.append([])
        for _ in range(rounds):
            uncached[-1].append(seconds(False, t))
            cached[-1].append(seconds(True, t))
    return device, list(lengths), uncached, cached
