"""read_position compares with candidates, and range leaves out the last of them.

Loses: read-position
"""

import math

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    dim = codes.shape[-1]
    omega = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    limit = min(50_000, int(0.4 * 2 * math.pi / omega[-1].item()))
    candidates = torch.arange(-limit, limit)
    phases = candidates.double().unsqueeze(-1) * omega
    table = torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)
    rows = codes.double().reshape(-1, dim)
    best = [(table @ row).argmax() for row in rows]
    return candidates[torch.stack(best)].reshape(codes.shape[:-1])
