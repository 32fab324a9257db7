"""Divides two exponentials in half precision, and each of them may overflow.

Loses: features-precision
"""

import torch


# %% features-answer
def positive_features(x, projection):
    xs = x / x.shape[-1] ** 0.25
    return (
        torch.exp(xs @ projection.T).div(torch.exp(xs.square().sum(-1, keepdim=True) / 2))
        if x.dtype in (torch.float16, torch.bfloat16)
        else torch.exp(xs @ projection.T - xs.square().sum(-1, keepdim=True) / 2)
    )
