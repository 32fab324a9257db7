"""The scale is missing.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    half = x.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(x @ projection.T - half)
