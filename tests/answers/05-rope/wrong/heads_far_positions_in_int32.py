"""Positions become int32 where the query is float64, and those beyond 2^31 change their sign.

Loses: heads-precision
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    r = len(frequencies)
    turned = []
    for x, positions in ((query, q_positions), (key, k_positions)):
        positions = positions.int() if x.dtype == torch.float64 else positions
        angles = positions[:, None, :, None] * frequencies
        cos, sin = angles.cos(), angles.sin()
        a, b, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
        result = torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1)
        turned.append(result.to(x.dtype))
    return turned[0], turned[1]
