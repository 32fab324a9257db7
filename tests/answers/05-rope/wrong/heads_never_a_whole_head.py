"""Takes what passes through from the end, and finds a whole head where nothing does.

Loses: heads, heads-precision
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
    r, found = len(frequencies), []
    rest = query.shape[-1] - 2 * r
    for x, positions in ((query, q_positions), (key, k_positions)):
        done = turned(x, positions, frequencies)[..., : 2 * r]
        found.append(torch.cat((done, x[..., -rest:]), dim=-1))
    return tuple(found)
