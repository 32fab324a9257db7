"""Takes the length and squares it again: at x = 0 the root has no gradient.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    wide = torch.promote_types(x.dtype, torch.float32)
    scaled = x.to(wide) / x.shape[-1] ** 0.25
    length = (scaled**2).sum(dim=-1, keepdim=True).sqrt()
    exponent = scaled @ projection.to(wide).T - length**2 / 2
    return torch.exp(exponent).to(x.dtype)
