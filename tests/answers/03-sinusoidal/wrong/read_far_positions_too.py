"""Compares with the codes of all positions to 50,000, also far beyond the longest wavelength.

Loses: read-position
"""

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    dim = codes.shape[-1]
    omega = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    candidates = torch.arange(-50000, 50001)
    phases = candidates.double().unsqueeze(-1) * omega
    table = torch.stack((phases.sin(), phases.cos()), -1).flatten(-2)
    flat = codes.double().reshape(-1, dim)
    best = torch.stack([(table @ row).argmax() for row in flat])
    return candidates[best].reshape(codes.shape[:-1])
