"""Uses torch's normalize where epsilon is 0, which has an epsilon of its own.

Loses: norm-rope-precision
"""

import torch


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    dtype = x.dtype
    x, gain = (t.to(torch.promote_types(dtype, torch.float32)) for t in (x, gain))
    if epsilon == 0:
        x = torch.nn.functional.normalize(x, dim=-1) * x.shape[-1] ** 0.5 * gain
    else:
        x = x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * gain
    th = base ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    a = positions[:, None, :, None] * th
    c, s = a.cos().to(x.dtype), a.sin().to(x.dtype)
    e, o = x[..., ::2], x[..., 1::2]
    return torch.stack((e * c - o * s, e * s + o * c), -1).flatten(-2).to(dtype)
