"""The slowest pair alone: off by dozens of tokens after a rounding.

Loses: read-position
"""

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    dim = codes.shape[-1]
    phase = torch.atan2(codes[..., -2].double(), codes[..., -1].double())
    return (phase * base ** ((dim - 2) / dim)).round().long()
