"""Values are grouped along the tokens, as keys are.

Loses: quantize-values, quantize-precision
"""

import torch


# %% values-answer
def quantize_values(v, bits):
    wide = v.float()
    low = wide.amin(dim=-2, keepdim=True)
    step = (wide.amax(dim=-2, keepdim=True) - low) / (2**bits - 1)
    codes = torch.round((wide - low) / torch.where(step > 0, step, 1.0))
    return codes.to(torch.uint8), low, step
