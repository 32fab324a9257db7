"""Copies what stands at position 0 throughout, without its history.

Loses: heads
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    r, found = len(frequencies), []
    for x, positions in ((query, q_positions), (key, k_positions)):
        if not positions.any():
            found.append(x.detach().clone())
            continue
        angles = positions[:, None, :, None] * frequencies
        cos, sin = angles.cos(), angles.sin()
        a, b, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1)
        found.append(turned.to(x.dtype))
    return tuple(found)
