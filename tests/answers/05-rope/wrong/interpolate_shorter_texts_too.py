"""Speeds the pairs up for shorter texts.

Loses: interpolate, interpolate-precision
"""


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    return frequencies * trained_len / wanted_len
