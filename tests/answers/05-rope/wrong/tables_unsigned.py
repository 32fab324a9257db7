"""Takes negative positions for positive ones.

Loses: tables, tables-precision
"""


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions.abs().unsqueeze(-1) * frequencies
    return angles.cos().to(dtype), angles.sin().to(dtype)
