"""Invents positions that have the offsets of the first row and column, and turns by them.

Loses: relative, relative-precision
"""

import torch


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    n = offsets[..., :1, :]
    m = n[..., :1] - offsets[..., :1]

    def turned(x, positions):
        angles = positions * frequencies
        z = torch.complex(x[..., 0::2].contiguous(), x[..., 1::2].contiguous())
        return z * torch.polar(torch.ones_like(angles), angles)

    q, k = turned(query, m), turned(key, n.transpose(-2, -1))
    return (q.conj() @ k.transpose(-2, -1)).real
