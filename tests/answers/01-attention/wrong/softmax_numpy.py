"""Goes through NumPy: no gradient, and NumPy has no bfloat16.

Loses: softmax-edges, softmax-precision
"""

import numpy as np
import torch


# %% softmax
def softmax(scores, dim):
    array = scores.detach().numpy()
    powers = np.exp(array - array.max(axis=dim, keepdims=True))
    return torch.from_numpy(powers / powers.sum(axis=dim, keepdims=True))
