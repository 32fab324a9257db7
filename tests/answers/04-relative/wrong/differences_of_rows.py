"""Counts rows and columns, and never looks at the positions.

Loses: differences, differences-precision
"""

import torch


# %% differences-answer
def relative_positions(q_positions, k_positions):
    m, n = torch.arange(q_positions.shape[-1]), torch.arange(k_positions.shape[-1])
    return (n.unsqueeze(-2) - m.unsqueeze(-1)).expand(*q_positions.shape, len(n))
