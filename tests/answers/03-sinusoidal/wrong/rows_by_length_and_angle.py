"""shift_rows goes through length and angle, whose gradient is nan at a pair (0, 0).

Loses: shift-rows, rows-precision
"""

import torch


# %% rows-answer
def shift_rows(rows, offset, base=10000.0):
    dim = rows.shape[-1]
    omega = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    first, second = rows[..., 0::2], rows[..., 1::2]
    radius, phase = torch.hypot(first, second), torch.atan2(first, second)
    phase = phase + offset * omega
    return torch.stack((radius * phase.sin(), radius * phase.cos()), -1).flatten(-2)
