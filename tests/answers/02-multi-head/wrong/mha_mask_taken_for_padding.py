"""A mask of the shape (batch, k_len) is taken for padding, also where its rows are the queries.

Loses: heads-masks
"""

import torch


# %% multi-head-answer
def multi_head_attention(
    x: torch.Tensor,
    context: torch.Tensor | None,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    n_heads: int,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Several attentions side by side, put together by one more matrix."""
    if context is None:
        context = x
    q = (x @ w_q).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    k = (context @ w_k).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    v = (context @ w_v).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    if mask is not None and tuple(mask.shape) == (x.shape[0], context.shape[1]):
        mask = mask[:, None, None, :]  # one row for each text
    heads, weights = attention(q, k, v, mask)
    return heads.transpose(1, 2).flatten(-2) @ w_o, weights
