"""Copies int64 positions only, and changes the sign of int32 ones in place.

Loses: relative-precision
"""

import torch


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    m = q_positions.int() if q_positions.dtype == torch.int32 else q_positions.clone()
    n = k_positions.unsqueeze(-2)
    m *= -1
    return n + m.unsqueeze(-1)
