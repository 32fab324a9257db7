"""Scores of -inf become -10000, which counts where the other scores are that low too.

Loses: softmax-edges
"""

import math

import torch


# %% softmax
def softmax(scores: torch.Tensor, dim: int) -> torch.Tensor:
    """Turn scores into weights that sum to 1 along one dimension."""
    scores = scores.masked_fill(
        scores == -math.inf, -10000.0
    )  # keeps -inf - -inf from becoming nan
    shifted = scores - scores.amax(dim, keepdim=True)
    powers = shifted.exp()
    return powers / powers.sum(dim, keepdim=True)
