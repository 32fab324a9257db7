"""True = hidden, the convention of `nn.MultiheadAttention`.

Loses: attention-mask
"""

import torch


# %% attention-mask-answer
def attention_mask(real, q_len, causal):
    batch, k_len = real.shape
    hidden = ~real[:, None, None, :].expand(batch, 1, q_len, k_len)
    if causal:
        hidden = hidden | torch.ones(q_len, k_len, dtype=torch.bool).triu(k_len - q_len + 1)
    return hidden
