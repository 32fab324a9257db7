"""The feed-forward gets 16 tokens at a time, so longer texts call it more than once.

Loses: post-norm
"""

# %% post-norm-answer
from collections.abc import Callable

import torch

CHUNK = 16


def post_norm_block(
    x: torch.Tensor,
    attention: Callable[[torch.Tensor], torch.Tensor],
    feed_forward: Callable[[torch.Tensor], torch.Tensor],
    norm_1: Callable[[torch.Tensor], torch.Tensor],
    norm_2: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    y = norm_1(x + attention(x))
    fed = torch.cat([feed_forward(part) for part in y.split(CHUNK, dim=1)], dim=1)
    return norm_2(y + fed)
