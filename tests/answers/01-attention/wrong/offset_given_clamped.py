"""A negative offset that was asked for is raised to 0.

Loses: causal-offset
"""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    offset = k_len - q_len if offset is None else max(offset, 0)
    i = torch.arange(q_len).unsqueeze(-1)
    return torch.arange(k_len) <= i + offset
