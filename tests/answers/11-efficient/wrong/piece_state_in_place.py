"""Adds to the state of the caller.

Loses: piece, piece-precision, piece-gradients
"""

import torch


# %% piece-answer
def read_piece(query_features, key_features, value, s, z):
    outputs = []
    for m in range(value.shape[2]):
        s += key_features[:, :, m, :, None] * value[:, :, m, None, :]
        z += key_features[:, :, m]
        above = (query_features[:, :, m, None, :] @ s).squeeze(2)
        outputs.append(above / (query_features[:, :, m] * z).sum(dim=-1, keepdim=True))
    return torch.stack(outputs, dim=2), s, z
