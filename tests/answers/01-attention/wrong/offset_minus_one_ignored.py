"""Takes an offset of -1 for no offset.

Loses: causal-offset
"""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    if offset is None or offset == -1:
        offset = k_len - q_len
    return torch.arange(k_len) <= torch.arange(q_len)[:, None] + offset
