"""Writes the turned part into the caller's queries and keys.

Loses: heads
"""

import torch


# %% heads-answer
def turned(x, positions, frequencies):
    r = len(frequencies)
    angles = positions[:, None, :, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    a, b, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
    return torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1).to(x.dtype)


def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    r = 2 * len(frequencies)
    for x, positions in ((query, q_positions), (key, k_positions)):
        x[..., :r] = turned(x.clone(), positions, frequencies)[..., :r]
    return query, key
