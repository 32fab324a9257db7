"""Takes c to be the largest difference that occurs, where that is smaller.

Loses: shaw-scores
"""

import math

import torch


# %% shaw-scores-answer
def shaw_scores(
    q: torch.Tensor, k: torch.Tensor, key_table: torch.Tensor, relative_position: torch.Tensor
) -> torch.Tensor:
    c = key_table.shape[0] // 2
    clipped = relative_position.clamp(-c, c)
    c = min(c, int(clipped.abs().max()))
    rows = clipped + c
    vectors = key_table[rows]  # (..., q_len, k_len, d_k)
    if vectors.dim() == 3:
        vectors = vectors.unsqueeze(0)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
    scores = scores + torch.einsum("bhqd,bqkd->bhqk", q, vectors.expand(len(q), -1, -1, -1))
    return scores / math.sqrt(q.shape[-1])
