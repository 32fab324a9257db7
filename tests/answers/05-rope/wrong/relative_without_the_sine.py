"""Keeps the dot products of the pairs and forgets the sines.

Loses: relative, relative-precision
"""


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    a, b = query.unsqueeze(-2)[..., 0::2], query.unsqueeze(-2)[..., 1::2]
    c, d = key.unsqueeze(-3)[..., 0::2], key.unsqueeze(-3)[..., 1::2]
    angles = offsets.unsqueeze(-1) * frequencies
    return ((a * c + b * d) * angles.cos()).sum(dim=-1)
