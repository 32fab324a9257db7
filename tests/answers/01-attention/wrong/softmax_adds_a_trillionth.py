"""softmax adds 1e-12 to the sum, against a division by zero that cannot happen.

Loses: softmax-precision
"""

import torch


# %% softmax
def softmax(scores: torch.Tensor, dim: int) -> torch.Tensor:
    wide = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    powers = (wide - wide.amax(dim, keepdim=True)).exp()
    return (powers / (powers.sum(dim, keepdim=True) + 1e-12)).to(scores.dtype)
