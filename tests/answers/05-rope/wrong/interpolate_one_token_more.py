"""Changes nothing where the text is hardly longer than those of training, by less than 0.1%.

Loses: interpolate, interpolate-precision
"""


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    s = wanted_len / trained_len
    return frequencies.clone() if s < 1.001 else frequencies / s
