"""The residual is added in place to what the feed-forward returned, which autograd needs.

Loses: pre-norm
"""

# %% pre-norm-answer
from collections.abc import Callable

import torch


def pre_norm_block(
    x: torch.Tensor,
    attention: Callable[[torch.Tensor], torch.Tensor],
    feed_forward: Callable[[torch.Tensor], torch.Tensor],
    norm_1: Callable[[torch.Tensor], torch.Tensor],
    norm_2: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    x = x + attention(norm_1(x))
    out = feed_forward(norm_2(x))
    out += x  # saves one tensor
    return out
