"""Changes the model's own frequencies.

Loses: interpolate
"""


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    frequencies /= max(1.0, wanted_len / trained_len)
    return frequencies
