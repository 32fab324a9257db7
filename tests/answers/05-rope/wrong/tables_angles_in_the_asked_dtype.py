"""Computes the angles in the dtype of the tables.

Loses: tables-precision
"""


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions.to(dtype).unsqueeze(-1) * frequencies.to(dtype)
    return angles.cos(), angles.sin()
