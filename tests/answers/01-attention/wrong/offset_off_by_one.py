"""Off by one where an offset is given: taken for the number of keys that query 0 sees.

Loses: causal-offset
"""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    offset = k_len - q_len if offset is None else offset - 1
    i = torch.arange(q_len).unsqueeze(-1)
    return torch.arange(k_len) <= i + offset
