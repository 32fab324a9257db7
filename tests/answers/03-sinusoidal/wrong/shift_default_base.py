"""Without a base it takes 1000.

Loses: shift-matrix
"""

import math

import torch


# %% shift-answer
def shift_matrix(offset, dim, base=1000.0):
    m = torch.zeros(dim, dim, dtype=torch.float64)
    for i in range(dim // 2):
        a = offset * base ** (-2 * i / dim)
        m[2 * i, 2 * i] = m[2 * i + 1, 2 * i + 1] = math.cos(a)
        m[2 * i, 2 * i + 1] = math.sin(a)
        m[2 * i + 1, 2 * i] = -math.sin(a)
    return m
