"""Ignores the dtype that was asked for.

Loses: tables, tables-precision
"""


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions.unsqueeze(-1) * frequencies
    return angles.cos(), angles.sin()
