"""Compares with m - window and m + window, which int64 does not always hold.

Loses: window-mask-precision
"""


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    m, n = q_positions.unsqueeze(-1), k_positions.unsqueeze(-2)
    last = m if causal else m + window
    return (m - window <= n) & (n <= last)
