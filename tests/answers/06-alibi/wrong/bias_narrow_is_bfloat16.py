"""Takes every narrow dtype of the slopes for bfloat16.

Loses: bias-edges
"""

import torch


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    d = offset.abs().unsqueeze(-3)
    out = -slopes.double().view(-1, 1, 1) * d
    return (
        out
        if slopes.dtype == torch.float64
        else out.float()
        if slopes.dtype == torch.float32
        else out.bfloat16()
    )
