"""Keeps tables by the numbers of the positions, and forgets their shape.

Loses: tables
"""

# %% tables-answer
_TABLES = {}


def rope_tables(positions, frequencies, dtype):
    key = (tuple(positions.flatten().tolist()), tuple(frequencies.tolist()), dtype)
    if key not in _TABLES:
        angles = positions.unsqueeze(-1) * frequencies
        _TABLES[key] = (angles.cos().to(dtype), angles.sin().to(dtype))
    cos, sin = _TABLES[key]
    return cos.clone(), sin.clone()
