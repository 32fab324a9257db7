"""As many queries as keys: the lower triangle, whatever the offset.

Loses: causal-offset
"""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    if q_len == k_len:
        return torch.ones(q_len, k_len, dtype=torch.bool).tril()
    if offset is None:
        offset = k_len - q_len
    return torch.arange(k_len) <= torch.arange(q_len)[:, None] + offset
