"""Returns float64 for bfloat16.

Loses: heads-precision
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
    q, k = query.double(), key.double()
    return turned(q, q_positions, frequencies), turned(k, k_positions, frequencies)
