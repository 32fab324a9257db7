"""Negative offsets are raised to 0, given or not.

Loses: causal-mask, causal-offset
"""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    if offset is None:
        offset = k_len - q_len
    i = torch.arange(q_len).unsqueeze(-1)
    j = torch.arange(k_len)
    return j <= i + max(offset, 0)
