"""Counts the turns from the estimate alone: one too many or too few near half a turn.

Loses: read-position
"""

import math

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    dim = codes.shape[-1]
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    phases = torch.atan2(codes[..., 0::2].double(), codes[..., 1::2].double())
    position = phases[..., -1] / frequencies[-1]
    for i in range(dim // 2 - 2, -1, -1):
        turns = (frequencies[i] * position / (2 * math.pi)).round()
        position = (phases[..., i] + 2 * math.pi * turns) / frequencies[i]
    return position.round().long()
