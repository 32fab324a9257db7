"""Uses the first position of each row and counts on from there.

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
    m = q_positions[:, :1] + torch.arange(q_positions.shape[1])
    n = k_positions[:, :1] + torch.arange(k_positions.shape[1])
    return turned(query, m, frequencies), turned(key, n, frequencies)
