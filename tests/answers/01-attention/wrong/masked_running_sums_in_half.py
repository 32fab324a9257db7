"""Goes from key to key with running sums in float16, where 2048 + 1 is 2048.

Loses: masked-precision
"""

import math

import torch


# %% masked-attention
def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    mask = mask.expand(scores.shape)
    largest = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    powers = (scores - largest).masked_fill(~mask, -math.inf).exp()
    total, output = torch.zeros_like(largest), 0
    for n in range(scores.shape[-1]):
        power = powers[..., n : n + 1]
        total = total + power
        output = output + power * value[..., n : n + 1, :]
    total = total.masked_fill(total == 0, 1.0)
    return output / total, powers / total
