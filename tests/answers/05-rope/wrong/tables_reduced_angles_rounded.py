"""Angles are reduced to one turn in float64, but rounded before the cosine and the sine.

Loses: tables-precision
"""

import math

import torch


# %% tables-answer
def rope_tables(
    positions: torch.Tensor, frequencies: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of every angle."""
    angles = positions.unsqueeze(-1) * frequencies
    angles = torch.remainder(angles, 2 * math.pi).to(dtype)  # small now, so nothing is lost
    return angles.cos(), angles.sin()
