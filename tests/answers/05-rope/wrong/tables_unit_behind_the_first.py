"""Puts the new dimension behind the first one: right for a list of positions.

Loses: tables
"""


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions[:, None] * frequencies
    return angles.cos().to(dtype), angles.sin().to(dtype)
