"""Positions become int32, and those beyond 2^31 come out on the other side of 0.

Loses: tables-precision
"""


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions.int().unsqueeze(-1) * frequencies
    return angles.cos().to(dtype), angles.sin().to(dtype)
