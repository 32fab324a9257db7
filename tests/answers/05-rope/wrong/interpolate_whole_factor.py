"""Divides by a whole number.

Loses: interpolate, interpolate-precision
"""


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    return frequencies / max(1, wanted_len // trained_len)
