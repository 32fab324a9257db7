"""Takes mask[h] of a mask of three dimensions, though its first may be 1.

Loses: heads-masks
"""

# %% multi-head-answer
import torch


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
    source = x if context is None else context
    outputs, weights = [], []
    for h, (a, b, c) in enumerate(
        zip(w_q.chunk(n_heads, -1), w_k.chunk(n_heads, -1), w_v.chunk(n_heads, -1))
    ):
        own = mask
        if mask is not None and mask.dim() == 3:
            own = mask[h]
        elif mask is not None and mask.dim() == 4:
            own = mask[:, h] if mask.shape[1] > 1 else mask[:, 0]
        output, weight = attention(x @ a, source @ b, source @ c, own)
        outputs.append(output)
        weights.append(weight)
    return torch.cat(outputs, dim=-1) @ w_o, torch.stack(weights, dim=1)
