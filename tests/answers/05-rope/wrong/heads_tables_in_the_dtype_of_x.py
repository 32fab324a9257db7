"""Rounds cosine and sine to the dtype of the query before they are used.

Loses: heads-precision
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    r = len(frequencies)

    def turn(x, positions):
        angles = positions[:, None, :, None] * frequencies
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
        return torch.cat((turned, rest), dim=-1)

    return turn(query, q_positions), turn(key, k_positions)
