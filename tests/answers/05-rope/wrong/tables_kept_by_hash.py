"""Keeps tables by the hash of their numbers, which is the same for -1 and -2.

Loses: tables
"""

# %% tables-answer
_tables = {}


def rope_tables(positions, frequencies, dtype):
    numbers = tuple(positions.flatten().tolist()), tuple(frequencies.tolist())
    place = hash((numbers, positions.shape, dtype))
    if place not in _tables:
        angles = positions.unsqueeze(-1) * frequencies
        _tables[place] = angles.cos().to(dtype), angles.sin().to(dtype)
    return _tables[place]
