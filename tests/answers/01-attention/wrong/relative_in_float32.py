"""Subtracts in float32: wrong beyond 2**24.

Loses: relative-precision
"""


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    m, n = q_positions.float().unsqueeze(-1), k_positions.float().unsqueeze(-2)
    return (n - m).to(q_positions.dtype)
