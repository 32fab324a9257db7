"""Counts all positions from the smallest, from which int64 does not always hold the distance.

Loses: window-mask-precision
"""

import torch


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    first = torch.minimum(q_positions.min(), k_positions.min())
    m, n = (q_positions - first).unsqueeze(-1), (k_positions - first).unsqueeze(-2)
    near = (m - n).abs() <= window
    return near & (n <= m) if causal else near
