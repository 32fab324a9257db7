"""Cosine and sine of the distance; the smallest int64 has no absolute value.

Loses: tables-precision
"""

import torch


# %% tables-answer
def rope_tables(
    positions: torch.Tensor, frequencies: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    distance = positions.abs().unsqueeze(-1)
    angles = distance * frequencies
    sign = positions.sign().unsqueeze(-1).to(torch.float64)
    # cos is even, sin is odd
    return torch.cos(angles).to(dtype), (sign * torch.sin(angles)).to(dtype)
