"""Detaches the gain when it converts it to float32.

Loses: norm-rope-precision
"""

import torch


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    dtype = x.dtype
    wide = torch.promote_types(dtype, torch.float32)
    x, gain = x.to(wide), gain if gain.dtype == wide else gain.data.to(wide)
    x = x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * gain
    th = base ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    a = positions[:, None, :, None] * th
    c, s = a.cos().to(x.dtype), a.sin().to(x.dtype)
    e, o = x[..., ::2], x[..., 1::2]
    return torch.stack((e * c - o * s, e * s + o * c), -1).flatten(-2).to(dtype)
