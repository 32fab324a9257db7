"""Keeps cosines and sines by the hash of positions and frequencies, the same for -1 and -2.

Loses: heads
"""

import torch

# %% heads-answer
_tables = {}


def turned(x, positions, frequencies):
    r = len(frequencies)
    numbers = tuple(positions.flatten().tolist()), tuple(frequencies.tolist())
    place = hash((numbers, positions.shape))
    if place not in _tables:
        angles = positions[:, None, :, None] * frequencies
        _tables[place] = angles.cos(), angles.sin()
    cos, sin = _tables[place]
    a, b, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
    return torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1).to(x.dtype)


def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    return turned(query, q_positions, frequencies), turned(key, k_positions, frequencies)
