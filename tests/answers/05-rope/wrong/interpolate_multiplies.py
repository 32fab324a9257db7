"""Multiplies the frequencies by the factor.

Loses: interpolate, interpolate-precision
"""


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    return frequencies * max(1.0, wanted_len / trained_len)
