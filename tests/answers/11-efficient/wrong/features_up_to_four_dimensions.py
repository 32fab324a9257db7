"""Fails for vectors with more than three leading dimensions.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    if x.dim() == 1:
        return positive_features(x[None], projection)[0]
    if x.dim() == 2:
        return positive_features(x[None], projection)[0]
    if x.dim() == 3:
        return positive_features(x[None], projection)[0]
    x = x / x.shape[-1] ** 0.25
    return torch.exp(
        torch.einsum("bhnd,rd->bhnr", x, projection) - 0.5 * (x * x).sum(-1, keepdim=True)
    )
