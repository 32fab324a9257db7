"""Makes s a tensor of the default dtype: 7/3 is rounded to float32.

Loses: interpolate-precision
"""

import torch


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    return frequencies / torch.tensor(wanted_len / trained_len).clamp(min=1.0)
