"""The two blocks of the example, whatever the width.

Loses: shift-matrix, shift-precision
"""

import math

import torch


# %% shift-answer
def shift_matrix(offset, dim, base=10000.0):
    blocks = torch.eye(dim, dtype=torch.float64)
    for i in range(min(2, dim // 2)):
        s, c = (f(offset * base ** (-2 * i / dim)) for f in (math.sin, math.cos))
        blocks[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor(
            [[c, s], [-s, c]], dtype=torch.float64
        )
    return blocks
