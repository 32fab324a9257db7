"""Always makes codes of 8 bits.

Loses: quantize-keys, quantize-values, quantize-precision
"""

import torch


# %% keys-answer
def quantize_keys(k, bits, group):
    n_groups = k.shape[2] // group
    full = n_groups * group
    groups = k[:, :, :full].float().unflatten(2, (n_groups, group))
    low = groups.amin(dim=3, keepdim=True)
    step = (groups.amax(dim=3, keepdim=True) - low) / (255)
    codes = torch.round((groups - low) / torch.where(step > 0, step, 1.0))
    return codes.to(torch.uint8), low, step, k[:, :, full:]


# %% values-answer
def quantize_values(v, bits):
    wide = v.float()
    low = wide.amin(dim=-1, keepdim=True)
    step = (wide.amax(dim=-1, keepdim=True) - low) / (255)
    codes = torch.round((wide - low) / torch.where(step > 0, step, 1.0))
    return codes.to(torch.uint8), low, step
