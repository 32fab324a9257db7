"""Powers of 2: a score times log2(e) = 1.44 may be too large for float16.

Loses: attention-edges
"""

# %% attention
import math

import torch


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    scale = math.log2(math.e) / math.sqrt(query.shape[-1])  # e^s = 2^(s log2 e), exp2 is faster
    scores = (query @ key.transpose(-2, -1)) * scale
    powers = torch.exp2(scores - scores.amax(dim=-1, keepdim=True))
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return weights @ value, weights
