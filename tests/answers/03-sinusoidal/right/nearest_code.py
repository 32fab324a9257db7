"""The position whose code has the largest dot product, among all that come into question."""

import math

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    dim = codes.shape[-1]
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    reach = int(0.4 * 2 * math.pi / frequencies[-1])
    candidates = torch.arange(-reach, reach + 1)
    phases = candidates.unsqueeze(-1) * frequencies
    table = torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
    return candidates[(codes.double() @ table.T).argmax(dim=-1)]
