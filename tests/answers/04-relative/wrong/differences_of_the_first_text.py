"""All texts get the differences of the first one.

Loses: differences
"""


# %% differences-answer
def relative_positions(q_positions, k_positions):
    offsets = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)
    if offsets.dim() > 2:
        offsets = offsets[:1].expand(offsets.shape)
    return offsets
