"""The offsets are indexed as if they had a dimension for the queries and one for the keys.

Loses: relative
"""


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    angles = offsets.double()[..., :, :, None] * frequencies
    a, b = query[..., 0::2].unsqueeze(-2), query[..., 1::2].unsqueeze(-2)
    c, d = key[..., 0::2].unsqueeze(-3), key[..., 1::2].unsqueeze(-3)
    return ((a * c + b * d) * angles.cos() + (b * c - a * d) * angles.sin()).sum(-1)
