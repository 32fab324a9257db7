"""Where queries and keys have the same positions, joins their heads and cuts them in two halves.

Loses: heads
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
    if torch.equal(q_positions, k_positions):
        both = turned(torch.cat((query, key), dim=1), q_positions, frequencies)
        return both.chunk(2, dim=1)
    return turned(query, q_positions, frequencies), turned(key, k_positions, frequencies)
