"""The feed-forward and its norm are given all tokens as one long list `(batch * length, d)`.

Loses: post-norm
"""

from collections.abc import Callable

import torch


# %% post-norm-answer
def post_norm_block(
    x: torch.Tensor,
    attention: Callable[[torch.Tensor], torch.Tensor],
    feed_forward: Callable[[torch.Tensor], torch.Tensor],
    norm_1: Callable[[torch.Tensor], torch.Tensor],
    norm_2: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """One block with a norm behind the sum of each residual."""
    y = norm_1(x + attention(x))
    y = y.flatten(0, 1)  # each token by itself
    return norm_2(y + feed_forward(y)).reshape(x.shape)
