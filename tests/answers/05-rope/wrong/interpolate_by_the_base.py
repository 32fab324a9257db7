"""Slows the slow pairs and not the fast ones, as a larger base does.

Loses: interpolate, interpolate-precision
"""

import torch


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    s = max(1.0, wanted_len / trained_len)
    pairs = len(frequencies)
    return frequencies * s ** (-torch.arange(pairs, dtype=torch.float64) / (pairs - 1))
