"""Counts the tokens and ignores the positions.

Loses: tables, tables-precision
"""

import torch


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    rows = torch.arange(positions.shape[-1]).expand(positions.shape)
    angles = rows.unsqueeze(-1) * frequencies
    return angles.cos().to(dtype), angles.sin().to(dtype)
