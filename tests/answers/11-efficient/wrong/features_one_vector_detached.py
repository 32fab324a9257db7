"""Detaches a vector that comes without leading dimensions.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    if x.dim() == 1:
        return positive_features(torch.tensor(x.tolist(), dtype=x.dtype)[None], projection)[0]
    x = x / x.shape[-1] ** 0.25
    return torch.exp(x @ projection.T - 0.5 * (x * x).sum(-1, keepdim=True))
