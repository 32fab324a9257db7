"""Changes nothing where s is close to 1.

Loses: interpolate-precision
"""

import math


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    s = max(1.0, wanted_len / trained_len)
    return frequencies.clone() if math.isclose(s, 1) else frequencies / s
