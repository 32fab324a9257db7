"""Leaves out the dimension of the heads.

Loses: attention-mask
"""

import torch


# %% attention-mask-answer
def attention_mask(real, q_len, causal):
    batch, k_len = real.shape
    mask = real[:, None, :].expand(batch, q_len, k_len)
    if causal:
        mask = mask & torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)
    return mask
