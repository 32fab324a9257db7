"""Forgets the heads between batch and length: texts are taken for heads.

Loses: heads, heads-precision
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    found = []
    for x, positions in ((query, q_positions), (key, k_positions)):
        angles = positions[..., None] * frequencies
        if x.shape[1] != positions.shape[0]:
            angles = angles[:1]
        cos, sin, r = angles.cos(), angles.sin(), len(frequencies)
        a, b, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
        found.append(torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1).to(x.dtype))
    return tuple(found)
