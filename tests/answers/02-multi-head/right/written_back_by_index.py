"""Puts the rows back by assignment, into a tensor of the result's own shape."""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    moved = None if mask is None else mask.index_select(-2, order).index_select(-1, order)
    result = attend(x.index_select(1, order), moved)
    out = torch.empty_like(result)
    out[:, order] = result
    return out


# %% attention-mask-answer
def attention_mask(real, q_len, causal):
    k_len = real.shape[1]
    mask = real[:, None, None, :].repeat(1, 1, q_len, 1)
    if causal:
        for i in range(q_len):
            mask[:, :, i, max(0, i + k_len - q_len + 1) :] = False
    return mask
