"""`offset or ...`: an offset of 0 counts as not given.

Loses: causal-offset
"""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    offset = offset or k_len - q_len
    i = torch.arange(q_len).unsqueeze(-1)
    return torch.arange(k_len) <= i + offset
