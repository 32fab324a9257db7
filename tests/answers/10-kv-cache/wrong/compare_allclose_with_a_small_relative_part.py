"""Allows 1e-12 of the size of a logit beside the tolerance.

Loses: compare-precision
"""

import torch


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        pair = logits(False, t), logits(True, t)
        if not torch.allclose(*pair, rtol=1e-12, atol=tolerance):
            raise ValueError(f"the logits differ at t = {t}")
        uncached.append([])
        cached.append([])
        for _ in range(rounds):
            uncached[-1].append(seconds(False, t))
            cached[-1].append(seconds(True, t))
    return device, list(lengths), uncached, cached
