"""Half the length in place of half its square.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    half = scaled.norm(dim=-1, keepdim=True) / 2
    return torch.exp(scaled @ projection.T - half)
