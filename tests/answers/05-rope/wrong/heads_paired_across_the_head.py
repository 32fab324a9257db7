"""Pairs component i with i + head_dim/2 in a head of which a part is turned.

Loses: heads
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    found = []
    for x, positions in ((query, q_positions), (key, k_positions)):
        angles = positions[:, None, :, None] * frequencies
        cos, sin, r, half = angles.cos(), angles.sin(), len(frequencies), x.shape[-1] // 2
        a, b = x[..., :r], x[..., half : half + r]
        parts = (a * cos - b * sin, x[..., r:half], a * sin + b * cos, x[..., half + r :])
        found.append(torch.cat(parts, dim=-1).to(x.dtype))
    return tuple(found)
