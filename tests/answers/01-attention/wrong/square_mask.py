"""A square mask, whatever the number of keys.

Loses: causal-mask, causal-offset
"""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    return torch.ones(q_len, q_len, dtype=torch.bool).tril(offset or 0)
