"""Divides in float32, and converts the frequencies back.

Loses: interpolate-precision
"""


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    return (frequencies.float() / max(1.0, wanted_len / trained_len)).double()
