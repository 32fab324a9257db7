"""Has letters for three dimensions of positions, and no more.

Loses: tables
"""

import torch


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    letters = "abc"[: positions.dim()]
    angles = torch.einsum(f"{letters},p->{letters}p", positions.double(), frequencies)
    return angles.cos().to(dtype), angles.sin().to(dtype)
