"""Turns the last components and lets the first ones pass.

Loses: heads, heads-precision
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
    found = []
    for x, positions in ((query, q_positions), (key, k_positions)):
        rest = x.shape[-1] - 2 * len(frequencies)
        back = turned(x.roll(-rest, dims=-1), positions, frequencies)
        found.append(back.roll(rest, dims=-1))
    return tuple(found)
