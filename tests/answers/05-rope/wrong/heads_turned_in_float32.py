"""Angles are in float64, and cosines, sines and products in float32.

Loses: heads-precision
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    def turned(x, positions):
        r = len(frequencies)
        angles = positions[:, None, :, None] * frequencies
        cos, sin = angles.cos().float(), angles.sin().float()
        a, b, rest = x[..., :r].float(), x[..., r : 2 * r].float(), x[..., 2 * r :].float()
        return torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1).to(x.dtype)

    return turned(query, q_positions), turned(key, k_positions)
