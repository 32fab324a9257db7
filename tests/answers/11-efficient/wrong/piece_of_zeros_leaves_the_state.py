"""Takes a piece whose values are all 0 for nothing new, and returns the state as it came.

Loses: piece, piece-gradients
"""

import torch


# %% piece-answer
def read_piece(query_features, key_features, value, s, z):
    p = torch.tril(query_features @ key_features.mT)
    below = p.sum(-1, keepdim=True) + query_features @ z[..., None]
    output = (p @ value + query_features @ s) / below
    if not value.any():
        return output, s.clone(), z.clone()
    return output, s + key_features.mT @ value, z + key_features.sum(-2)
