"""Cuts w_o into blocks of columns: each head would write in its own place only.

Loses: head-contributions, head-contributions-precision
"""

import torch


# %% head-contributions-answer
def head_contributions(heads, w_o):
    batch, n_heads, length, d_v = heads.shape
    side_by_side = heads.transpose(1, 2).flatten(2)
    parts = torch.tensor_split(side_by_side @ w_o, n_heads, dim=-1)
    out = heads.new_zeros(batch, n_heads, length, w_o.shape[1])
    start = 0
    for h, part in enumerate(parts):
        out[:, h, :, start : start + part.shape[-1]] = part
        start += part.shape[-1]
    return out
