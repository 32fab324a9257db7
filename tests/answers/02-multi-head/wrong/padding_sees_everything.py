"""Opens a text that is nothing but padding, so that no softmax meets an empty row.

Loses: attention-mask
"""

import torch


# %% attention-mask-answer
def attention_mask(real, q_len, causal):
    batch, k_len = real.shape
    real = real | ~real.any(dim=-1, keepdim=True)
    mask = real[:, None, None, :].expand(batch, 1, q_len, k_len)
    if causal:
        mask = mask & torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)
    return mask
