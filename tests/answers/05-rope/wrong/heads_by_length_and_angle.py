"""Rotates heads through length and angle, with the gradient nan at a pair (0, 0).

Loses: heads
"""

import torch


# %% heads-answer
def turned(x, positions, frequencies):
    r = len(frequencies)
    a, b, rest = x[..., :r].double(), x[..., r : 2 * r].double(), x[..., 2 * r :]
    radius, angle = torch.hypot(a, b), torch.atan2(b, a)
    angle = angle + positions[:, None, :, None] * frequencies
    return torch.cat((radius * angle.cos(), radius * angle.sin(), rest), dim=-1).to(x.dtype)


def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    return turned(query, q_positions, frequencies), turned(key, k_positions, frequencies)
