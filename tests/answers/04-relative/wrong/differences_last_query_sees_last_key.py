"""Rows counted from the end, as in a causal mask: right for the example.

Loses: differences, differences-precision
"""

import torch


# %% differences-answer
def relative_positions(q_positions, k_positions):
    q_len, k_len = q_positions.shape[-1], k_positions.shape[-1]
    m = torch.arange(q_len) + k_len - q_len
    return (torch.arange(k_len) - m.unsqueeze(-1)).expand(*q_positions.shape, k_len)
