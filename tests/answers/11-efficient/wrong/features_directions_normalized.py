"""Divides each direction by its length, and multiplies the products by it again.

Loses: features
"""

import torch


# %% features-answer
def positive_features(x, projection):
    scaled = x / x.shape[-1] ** 0.25
    lengths = projection.norm(dim=-1)
    products = scaled @ (projection / lengths.unsqueeze(-1)).mT * lengths
    return torch.exp(products - scaled.square().sum(dim=-1, keepdim=True) / 2)
