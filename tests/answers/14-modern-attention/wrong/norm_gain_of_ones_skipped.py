"""Leaves out a gain of ones, with which training begins: it gets no gradient.

Loses: norm-rope
"""

import torch


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    normed = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + epsilon)
    if (gain != 1).any():
        normed = normed * gain
    theta = base ** -(torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    angles = positions[:, None, :, None] * theta
    cos, sin = angles.cos().to(wide.dtype), angles.sin().to(wide.dtype)
    a, b = normed[..., 0::2], normed[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)
