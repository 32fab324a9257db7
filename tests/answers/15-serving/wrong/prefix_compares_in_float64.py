"""Compares tokens in float64, which skips numbers above 2^53.

Loses: prefix
"""

import torch


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    which, best = None, 0
    for place, text in enumerate(held):
        n = min(len(text), len(prompt) - 1)
        common = int(
            torch.isclose(text[:n].double(), prompt[:n].double(), rtol=0.0, atol=0.5)
            .long()
            .cumprod(dim=0)
            .sum()
        )
        reused = common // block_size * block_size
        if reused > best:
            which, best = place, reused
    return which, best
