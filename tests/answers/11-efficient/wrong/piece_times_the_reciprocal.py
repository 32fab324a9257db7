"""Multiplies by the reciprocal of the denominator, whose gradient has its square, which overflows.

Loses: piece-precision
"""

import torch


# %% piece-answer
def read_piece(query_features, key_features, value, s, z):
    products = torch.tril(query_features @ key_features.mT)
    above = products @ value + query_features @ s
    below = products.sum(dim=-1, keepdim=True) + query_features @ z.unsqueeze(-1)
    new_s = s + key_features.mT @ value
    new_z = z + key_features.sum(dim=-2)
    return above * below.reciprocal(), new_s, new_z
