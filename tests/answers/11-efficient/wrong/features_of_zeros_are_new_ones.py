"""Where x is 0, all features are new ones, through which no gradient flows.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    if not x.any():
        return x.new_ones(*x.shape[:-1], len(projection))
    x = x / x.shape[-1] ** 0.25
    return torch.exp(x @ projection.T - 0.5 * (x * x).sum(-1, keepdim=True))
