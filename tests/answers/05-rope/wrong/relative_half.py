"""Pairs component i with i + d/2.

Loses: relative, relative-precision
"""


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    a, b = query.unsqueeze(-2).chunk(2, dim=-1)
    c, d = key.unsqueeze(-3).chunk(2, dim=-1)
    angles = offsets.unsqueeze(-1) * frequencies
    return ((a * c + b * d) * angles.cos() + (b * c - a * d) * angles.sin()).sum(dim=-1)
