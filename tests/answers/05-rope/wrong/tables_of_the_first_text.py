"""Gives every text the positions of the first one.

Loses: tables
"""


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    if positions.dim() > 1:
        positions = positions[:1].expand_as(positions)
    angles = positions.unsqueeze(-1) * frequencies
    return angles.cos().to(dtype), angles.sin().to(dtype)
