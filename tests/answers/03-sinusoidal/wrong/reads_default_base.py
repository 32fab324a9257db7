"""Without a base it takes 1000.

Loses: read-position
"""

import math

import torch


# %% read-answer
def read_position(codes, base=1000.0):
    return _read(codes, base)


def _read(codes, base):
    dim = codes.shape[-1]
    w = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    p = torch.atan2(codes.double()[..., 0::2], codes.double()[..., 1::2])
    x = p[..., -1] / w[-1]
    for i in reversed(range(dim // 2 - 1)):
        x = (p[..., i] + 2 * math.pi * torch.round((w[i] * x - p[..., i]) / (2 * math.pi))) / w[i]
    return x.round().long()
