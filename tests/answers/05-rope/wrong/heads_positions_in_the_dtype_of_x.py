"""Changes the positions, and nothing else, to the dtype of the queries: 257 becomes 256.

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
    m, n = q_positions.to(query.dtype), k_positions.to(query.dtype)
    return turned(query, m, frequencies), turned(key, n, frequencies)
