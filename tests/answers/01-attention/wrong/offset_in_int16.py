"""Counts in int16, which ends at 32767: the keys after that get negative numbers and are seen.

Loses: causal-offset
"""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    if offset is None:
        offset = k_len - q_len
    first = min(max(offset, -q_len), k_len)
    i = torch.arange(first, first + q_len).to(torch.int16)
    n = torch.arange(k_len).to(torch.int16)
    return n <= i.unsqueeze(-1)
