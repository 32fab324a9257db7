"""Pairs neighbours.

Loses: heads, heads-precision
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    found = []
    for x, positions in ((query, q_positions), (key, k_positions)):
        angles = positions[:, None, :, None] * frequencies
        cos, sin, r = angles.cos(), angles.sin(), len(frequencies)
        a, b = x[..., 0 : 2 * r : 2], x[..., 1 : 2 * r : 2]
        pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
        found.append(torch.cat((pairs, x[..., 2 * r :]), dim=-1).to(x.dtype))
    return tuple(found)
