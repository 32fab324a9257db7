"""Cuts n − m off at ±(2^63 − 1) or ±(2^31 − 1), but the lowest number is one lower.

Loses: relative-precision
"""

import torch


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    result = k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)
    most = torch.iinfo(result.dtype).max
    return result.clamp(-most, most)
