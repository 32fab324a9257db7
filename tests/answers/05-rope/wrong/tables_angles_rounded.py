"""Rounds the angles, and takes cosine and sine of what is left.

Loses: tables-precision
"""


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = (positions.unsqueeze(-1) * frequencies).to(dtype)
    return angles.cos(), angles.sin()
