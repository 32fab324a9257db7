"""Takes two logits that are both nan to be equal.

Loses: compare
"""

import torch


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        pair = logits(False, t), logits(True, t)
        if not torch.allclose(*pair, rtol=0, atol=tolerance, equal_nan=True):
            raise ValueError(f"the logits differ at t = {t}")
        uncached.append([])
        cached.append([])
        for _ in range(rounds):
            uncached[-1].append(seconds(False, t))
            cached[-1].append(seconds(True, t))
    return device, list(lengths), uncached, cached
