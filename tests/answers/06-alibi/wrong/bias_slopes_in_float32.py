"""Makes a new tensor of the slopes' numbers, in the default dtype, float32.

Loses: bias-precision
"""

import torch


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    distance = offset.abs().unsqueeze(-3).to(slopes.dtype)
    numbers = torch.tensor(slopes.tolist())
    return (-numbers.view(-1, 1, 1) * distance).to(slopes.dtype)
