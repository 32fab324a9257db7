"""Returns sine and cosine, as the sinusoidal encoding orders them.

Loses: tables, tables-precision
"""


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions.unsqueeze(-1) * frequencies
    return angles.sin().to(dtype), angles.cos().to(dtype)
