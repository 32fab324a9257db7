"""Computes the exponent from the distance between vector and direction.

Loses: features-precision
"""

import torch


# %% features-answer
def positive_features(x, projection):
    x = x * x.shape[-1] ** -0.25
    d2 = (x.unsqueeze(-2) - projection).square().sum(-1)
    return torch.exp((projection.square().sum(-1) - d2) / 2)
