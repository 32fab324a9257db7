"""Gives every text the positions of the first one where all start at the same position.

Loses: heads
"""

import torch


# %% heads-answer
def turned(x, positions, frequencies):
    r = len(frequencies)
    if (positions[:, 0] == positions[0, 0]).all():
        positions = positions[:1]
    angles = positions[:, None, :, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    a, b, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
    return torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1).to(x.dtype)


def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    return turned(query, q_positions, frequencies), turned(key, k_positions, frequencies)
