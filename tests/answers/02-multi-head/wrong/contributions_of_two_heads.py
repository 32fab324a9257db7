"""Cuts w_o in two halves, for the two heads of the example.

Loses: head-contributions
"""

import torch


# %% head-contributions-answer
def head_contributions(heads, w_o):
    half = len(w_o) // 2
    return torch.stack([heads[:, 0] @ w_o[:half], heads[:, 1] @ w_o[half:]], dim=1)
