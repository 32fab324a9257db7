"""The fastest pair alone: right for the first three tokens.

Loses: read-position
"""

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    return torch.atan2(codes[..., 0].double(), codes[..., 1].double()).round().long()
