"""Leaves zeros where components should pass through.

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
    r = 2 * len(frequencies)
    keep = torch.arange(query.shape[-1]) < r
    q, k = turned(query, q_positions, frequencies), turned(key, k_positions, frequencies)
    return (q * keep).to(query.dtype), (k * keep).to(key.dtype)
