"""Rows and columns are counted from the end; the positions are not looked at.

Loses: window-mask, window-mask-precision
"""

import torch


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    q_len, k_len = q_positions.shape[-1], k_positions.shape[-1]
    place = torch.arange(q_len).unsqueeze(-1) + k_len - q_len
    distance = (place - torch.arange(k_len)).expand(len(q_positions), -1, -1)
    near = distance.abs() <= window
    return near & (distance >= 0) if causal else near
