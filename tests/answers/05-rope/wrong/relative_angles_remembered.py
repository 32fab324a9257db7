"""Keeps cosines and sines for each shape of the offsets, as if each layer asked for the same.

Loses: relative, relative-precision
"""


# %% relative-answer
def relative_scores(query, key, offsets, frequencies, known={}):
    shape = offsets.shape, frequencies.shape
    if shape not in known:
        angles = offsets.unsqueeze(-1) * frequencies
        known[shape] = angles.cos(), angles.sin()
    cos, sin = known[shape]
    a, b = query.unsqueeze(-2)[..., 0::2], query.unsqueeze(-2)[..., 1::2]
    c, d = key.unsqueeze(-3)[..., 0::2], key.unsqueeze(-3)[..., 1::2]
    return ((a * c + b * d) * cos + (b * c - a * d) * sin).sum(dim=-1)
