"""Keeps tables by frequencies, dtype and the shape of the positions.

Loses: tables
"""

# %% tables-answer
_tables = {}


def rope_tables(positions, frequencies, dtype):
    place = (tuple(positions.shape), tuple(frequencies.tolist()), dtype)
    if place not in _tables or positions.numel() < 3:
        angles = positions.unsqueeze(-1) * frequencies
        _tables[place] = angles.cos().to(dtype), angles.sin().to(dtype)
    return _tables[place]
