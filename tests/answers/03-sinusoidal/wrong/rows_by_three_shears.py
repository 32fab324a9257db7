"""Three shears, with the tangent of half the angle, which is huge near half a turn.

Loses: shift-rows, rows-precision
"""

import torch


# %% rows-answer
def shift_rows(rows: torch.Tensor, offset: float, base: float = 10000.0) -> torch.Tensor:
    pairs = rows.unflatten(-1, (-1, 2))
    exponents = torch.arange(0, rows.shape[-1], 2, dtype=torch.float64) / rows.shape[-1]
    delta = offset * base**-exponents
    t, s = torch.tan(delta / 2), torch.sin(delta)
    x, y = pairs.unbind(-1)
    x = x + t * y  # shear, shear, shear: three products in place of four
    y = y - s * x
    x = x + t * y
    return torch.stack((x, y), dim=-1).flatten(-2)
