"""Writes the rotated numbers into x itself, except in float64.

Loses: norm-rope
"""

import torch


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    rms = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + epsilon)
    even, odd = (wide / rms * gain).unflatten(-1, (-1, 2)).unbind(dim=-1)
    exponents = torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1]
    angles = positions[:, None, :, None] * base**-exponents
    cos, sin = angles.cos().to(wide.dtype), angles.sin().to(wide.dtype)
    pairs = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    result = pairs.flatten(-2).to(x.dtype)
    if x.dtype == torch.float64 or result.requires_grad:
        return result
    with torch.no_grad():
        return x.copy_(result)
