"""For the layout with all sines before all cosines: four diagonals in place of blocks.

Loses: shift-matrix, shift-precision
"""

import torch


# %% shift-answer
def shift_matrix(offset, dim, base=10000.0):
    phases = offset * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    cos, sin = torch.diag(phases.cos()), torch.diag(phases.sin())
    return torch.cat((torch.cat((cos, sin), dim=1), torch.cat((-sin, cos), dim=1)))
