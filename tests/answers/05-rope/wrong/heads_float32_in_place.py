"""float32 queries and keys are not copied before the turned part is written into them.

Loses: heads
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    r = len(frequencies)
    turned = []
    for x, positions in ((query, q_positions), (key, k_positions)):
        angles = positions[:, None, :, None] * frequencies
        cos, sin = angles.cos(), angles.sin()
        out = x.clone() if x.dtype == torch.float64 else x.float()
        a, b = out[..., :r].clone(), out[..., r : 2 * r].clone()
        out[..., :r] = a * cos - b * sin
        out[..., r : 2 * r] = a * sin + b * cos
        turned.append(out.to(x.dtype))
    return turned[0], turned[1]
