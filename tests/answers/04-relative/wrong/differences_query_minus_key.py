"""m − n, as Transformer-XL and DeBERTa count.

Loses: differences, differences-precision
"""


# %% differences-answer
def relative_positions(q_positions, k_positions):
    return q_positions.long().unsqueeze(-1) - k_positions.long().unsqueeze(-2)
