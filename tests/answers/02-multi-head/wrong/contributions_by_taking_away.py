"""What a head writes as a difference of two outputs, which loses digits beside large heads.

Loses: head-contributions-precision
"""

# %% head-contributions-answer
import torch


def head_contributions(heads: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    def written(some):
        return some.transpose(1, 2).flatten(-2) @ w_o

    output = written(heads)
    parts = []
    for h in range(heads.shape[1]):
        keep = torch.ones(heads.shape[1], 1, 1, dtype=heads.dtype)
        keep[h] = 0
        parts.append(output - written(heads * keep))  # what is missing without head h
    return torch.stack(parts, dim=1)
