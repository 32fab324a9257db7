"""Goes through numpy: right numbers, no gradient.

Loses: merge-heads
"""

import numpy as np
import torch


# %% merge-heads-answer
def merge_heads(x):
    heads = np.moveaxis(x.detach().numpy(), -3, -2)
    return torch.from_numpy(heads.reshape(*heads.shape[:-2], -1))
