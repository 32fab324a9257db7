"""Knows one list of positions only.

Loses: tables
"""

import torch


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = torch.outer(positions.double(), frequencies)
    return angles.cos().to(dtype), angles.sin().to(dtype)
