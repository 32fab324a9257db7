"""Works in the dtype of the codes: what is rounded gets rounder with each step.

Loses: read-position
"""

import math

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    dim = codes.shape[-1]
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    phases = torch.atan2(codes[..., 0::2], codes[..., 1::2])
    position = phases[..., -1] / frequencies[-1].to(codes.dtype)
    for i in range(dim // 2 - 2, -1, -1):
        speed = frequencies[i].to(codes.dtype)
        turns = ((speed * position - phases[..., i]) / (2 * math.pi)).round()
        position = (phases[..., i] + 2 * math.pi * turns) / speed
    return position.round().long()
