"""Goes through the rows of a table, and takes a batch for a row.

Loses: read-position
"""

import math

import torch


# %% read-answer
def read_position(codes, base=10000.0):
    dim = codes.shape[-1]
    found = []
    for code in codes:
        phases = torch.atan2(code[..., 0::2].double(), code[..., 1::2].double()).flatten().tolist()
        position = 0.0
        for i in range(dim // 2 - 1, -1, -1):
            length = base ** (2 * i / dim)
            turns = round((position / length - phases[i]) / (2 * math.pi))
            position = (phases[i] + 2 * math.pi * turns) * length
        found.append(round(position))
    return torch.tensor(found)
