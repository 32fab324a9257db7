"""Takes torch.sqrt of a whole number in a tensor: a float32 root in float64 work.

Loses: attention-precision
"""

import torch


# %% attention
def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / torch.sqrt(torch.tensor(query.shape[-1]))
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
