"""Whole positions index a table, and the index is computed in their own small dtype.

Loses: encoding-edges
"""

import torch


# %% encoding-answer
def sinusoidal_encoding(positions: torch.Tensor, dim: int, base: float = 10000.0) -> torch.Tensor:
    omega = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)

    def encode(places):
        phases = places.double().unsqueeze(-1) * omega
        return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)

    if not positions.is_floating_point():
        low, high = int(positions.min()), int(positions.max())
        if high - low < 4096:  # many tokens, few positions: each code once
            table = encode(torch.arange(low, high + 1))
            return table[(positions - low).long()]
    return encode(positions)
