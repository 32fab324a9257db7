"""Leaves torch.allclose its relative tolerance of 1e-5, which adds to the one that is given.

Loses: compare, compare-precision
"""

import torch


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        if not torch.allclose(logits(False, t), logits(True, t), atol=tolerance):
            raise ValueError(f"the logits differ at t = {t}")
        uncached.append([])
        cached.append([])
        for _ in range(rounds):
            uncached[-1].append(seconds(False, t))
            cached[-1].append(seconds(True, t))
    return device, list(lengths), uncached, cached
