"""Goes through NumPy: right values, and no gradient at all.

Loses: attention-edges, attention-precision
"""

import numpy as np
import torch


# %% attention
def attention(query, key, value):
    q, k, v = (t.detach().numpy() for t in (query, key, value))
    scores = q @ k.swapaxes(-2, -1) / q.shape[-1] ** 0.5
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return torch.from_numpy(weights @ v), torch.from_numpy(weights)
