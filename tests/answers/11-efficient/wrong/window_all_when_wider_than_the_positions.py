"""Lets every key in as soon as the window exceeds the largest position.

Loses: window-mask
"""

import torch


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    d = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
    span = max(q_positions.max().item(), k_positions.max().item())
    if window >= span > 0:
        return (d >= 0) if causal else torch.ones_like(d, dtype=torch.bool)
    near = d.abs() <= window
    return near & (d >= 0) if causal else near
