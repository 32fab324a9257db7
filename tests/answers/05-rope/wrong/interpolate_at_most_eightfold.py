"""Slows the pairs down by a factor of 8 at most.

Loses: interpolate, interpolate-precision
"""


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    return frequencies / min(max(1.0, wanted_len / trained_len), 8.0)
