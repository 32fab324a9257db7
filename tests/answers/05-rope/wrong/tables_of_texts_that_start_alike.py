"""Takes the positions of the first text for all where all texts start at the same position.

Loses: tables
"""

# %% tables-answer


def rope_tables(positions, frequencies, dtype):
    if positions.dim() == 2 and (positions[:, 0] == positions[0, 0]).all():
        positions = positions[:1].expand(positions.shape)
    angles = positions.unsqueeze(-1) * frequencies
    return angles.cos().to(dtype), angles.sin().to(dtype)
