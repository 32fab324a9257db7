"""A head that is turned as a whole goes through complex numbers, cut off from its gradient.

Loses: heads
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    r = len(frequencies)
    turned = []
    for x, positions in ((query, q_positions), (key, k_positions)):
        angles = positions[:, None, :, None] * frequencies
        a, b, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
        if 2 * r == x.shape[-1]:
            z = torch.complex(a.double(), b.double()).detach() * torch.exp(1j * angles)
            result = torch.cat((z.real, z.imag), dim=-1)
        else:
            cos, sin = angles.cos(), angles.sin()
            result = torch.cat((a * cos - b * sin, a * sin + b * cos, rest), dim=-1)
        turned.append(result.to(x.dtype))
    return turned[0], turned[1]
