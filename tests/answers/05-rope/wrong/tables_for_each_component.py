"""Makes tables as wide as the head, every column twice.

Loses: tables, tables-precision
"""

import torch


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions.unsqueeze(-1) * torch.cat((frequencies, frequencies))
    return angles.cos().to(dtype), angles.sin().to(dtype)
