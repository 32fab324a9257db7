"""Knows positions of up to three dimensions, and takes more for three.

Loses: differences
"""


# %% differences-answer
def relative_positions(q_positions, k_positions):
    q, k = q_positions.long(), k_positions.long()
    if q.dim() == 1:
        return k[None, :] - q[:, None]
    if q.dim() == 2:
        return k[:, None, :] - q[:, :, None]
    return k[:, :, None, :] - q[:, :, :, None]
