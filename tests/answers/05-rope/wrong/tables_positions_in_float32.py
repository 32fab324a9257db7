"""Positions go to float32 first, which holds whole numbers up to 2^24.

Loses: tables-precision
"""


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions.float().unsqueeze(-1) * frequencies
    return angles.cos().to(dtype), angles.sin().to(dtype)
