"""The default offset is 0, so a new query with a cache sees only key 0.

Loses: causal-mask
"""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    if offset is None:
        offset = 0
    i = torch.arange(q_len).unsqueeze(-1)
    j = torch.arange(k_len)
    return j <= i + offset
