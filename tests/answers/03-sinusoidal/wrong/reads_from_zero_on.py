"""Searches 0, 1, 2, …: no negative position is found.

Loses: read-position
"""

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    dim = codes.shape[-1]
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    phases = torch.arange(int(2.6 / frequencies[-1]), dtype=torch.float64)[:, None] * frequencies
    table = torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
    return (codes.double() @ table.T).argmax(dim=-1)
