"""Epsilon is always 1e-6.

Loses: norm-rope, norm-rope-precision
"""

import torch


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    rms = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    normed = wide / rms * gain
    theta = base ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    angles = positions[:, None, :, None] * theta
    cos, sin = angles.cos().to(wide.dtype), angles.sin().to(wide.dtype)
    a, b = normed[..., 0::2], normed[..., 1::2]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    return turned.to(x.dtype)
