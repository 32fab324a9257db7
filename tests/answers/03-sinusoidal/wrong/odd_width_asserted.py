"""An assert in place of the ValueError.

Loses: frequencies
"""

import torch


# %% frequencies-answer
def angular_frequencies(dim, base=10000.0):
    assert dim % 2 == 0
    assert dim > 0
    assert base > 1
    return base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
