"""Without the causal rule there is one row for all queries.

Loses: attention-mask
"""

import torch


# %% attention-mask-answer
def attention_mask(real, q_len, causal):
    mask = real[:, None, None, :]
    if causal:
        k_len = real.shape[1]
        mask = mask & torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)
    return mask
