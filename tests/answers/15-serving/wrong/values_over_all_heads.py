"""All heads of a token form one group.

Loses: quantize-values, quantize-precision
"""

import torch


# %% values-answer
def quantize_values(v, bits):
    wide = v.float()
    low = wide.amin(dim=(1, 3), keepdim=True).expand(-1, v.shape[1], -1, -1)
    step = (wide.amax(dim=(1, 3), keepdim=True) - low) / (2**bits - 1)
    codes = torch.round((wide - low) / torch.where(step > 0, step, 1.0))
    return codes.to(torch.uint8), low, step
