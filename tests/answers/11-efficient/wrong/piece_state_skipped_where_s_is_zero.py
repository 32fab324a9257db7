"""Takes a state with S = 0 for the one before the first piece, and leaves out z too.

Loses: piece, piece-gradients
"""

import torch


# %% piece-answer
def read_piece(query_features, key_features, value, s, z):
    products = torch.tril(query_features @ key_features.mT)
    above, below = products @ value, products.sum(dim=-1, keepdim=True)
    if s.any() or s.requires_grad or z.requires_grad:
        above = above + query_features @ s
        below = below + query_features @ z.unsqueeze(-1)
    return above / below, s + key_features.mT @ value, z + key_features.sum(dim=-2)
