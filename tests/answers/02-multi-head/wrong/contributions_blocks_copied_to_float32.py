"""Copies the blocks of w_o into a tensor of zeros, which is float32.

Loses: head-contributions-precision
"""

import torch


# %% head-contributions-answer
def head_contributions(heads, w_o):
    n_heads, d_v = heads.shape[1], heads.shape[3]
    blocks = torch.zeros(n_heads, d_v, w_o.shape[1])
    for h in range(n_heads):
        blocks[h] = w_o[h * d_v : (h + 1) * d_v]
    return heads @ blocks.to(heads.dtype)
