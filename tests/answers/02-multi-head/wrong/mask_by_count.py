"""Counts the real tokens and takes them to stand in front.

Loses: attention-mask
"""

import torch


# %% attention-mask-answer
def attention_mask(real, q_len, causal):
    batch, k_len = real.shape
    n_real = real.sum(dim=-1)[:, None, None, None]
    mask = (torch.arange(k_len) < n_real).expand(batch, 1, q_len, k_len)
    if causal:
        mask = mask & torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)
    return mask
