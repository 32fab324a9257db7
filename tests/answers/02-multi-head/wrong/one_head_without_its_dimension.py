"""Leaves the dimension of heads out where there is one head: a mask of four no longer fits.

Loses: heads-masks
"""


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
    context = x if context is None else context
    q, k, v = x @ w_q, context @ w_k, context @ w_v
    if n_heads == 1:
        output, weights = attention(q, k, v, mask)
        return output @ w_o, weights.unsqueeze(1)
    q, k, v = (t.unflatten(-1, (n_heads, -1)).transpose(1, 2) for t in (q, k, v))
    heads, weights = attention(q, k, v, mask)
    return heads.transpose(1, 2).flatten(2) @ w_o, weights
