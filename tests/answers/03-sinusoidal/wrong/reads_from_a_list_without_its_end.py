"""Compares with the codes of -50000 to 49999, and so never finds 50000.

Loses: read-position
"""

import math

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    dim = codes.shape[-1]
    w = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    far = 50_000
    far = min(far, int(0.4 * 2 * math.pi / w[-1].item()) + 1)
    candidates = torch.arange(-far, far)
    phase = candidates.double().unsqueeze(-1) * w
    table = torch.stack((phase.sin(), phase.cos()), dim=-1).flatten(-2)
    flat = codes.double().reshape(-1, dim)
    best = torch.cat([(part @ table.T).argmax(-1) for part in flat.split(64)])
    return candidates[best].reshape(codes.shape[:-1])
