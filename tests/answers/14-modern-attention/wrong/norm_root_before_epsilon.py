"""Takes the root before epsilon comes in by `hypot`: it has no gradient at a vector of zeros.

Loses: norm-rope
"""

import torch


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    root = wide.square().mean(dim=-1, keepdim=True).sqrt()
    normed = wide / torch.hypot(root, torch.full_like(root, epsilon**0.5)) * gain
    theta = base ** -(torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    angles = positions[:, None, :, None] * theta
    cos, sin = angles.cos().to(wide.dtype), angles.sin().to(wide.dtype)
    a, b = normed[..., 0::2], normed[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)
