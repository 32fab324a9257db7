"""Copies numbers into a fresh tensor: no gradient arrives.

Loses: head-contributions, head-contributions-precision
"""

import torch


# %% head-contributions-answer
def head_contributions(heads, w_o):
    blocks = w_o.unflatten(0, (heads.shape[1], -1))
    return torch.tensor((heads @ blocks).tolist(), dtype=heads.dtype)
