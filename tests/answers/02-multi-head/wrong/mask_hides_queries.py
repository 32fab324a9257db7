"""Hides the rows of the padding instead of its columns.

Loses: attention-mask
"""

import torch


# %% attention-mask-answer
def attention_mask(real, q_len, causal):
    batch, k_len = real.shape
    mask = real[:, None, -q_len:, None].expand(batch, 1, q_len, k_len)
    if causal:
        mask = mask & torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)
    return mask
