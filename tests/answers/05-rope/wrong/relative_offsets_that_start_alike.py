"""Takes the offsets of the first text for all where the offsets of their first queries agree.

Loses: relative
"""

# %% relative-answer


def relative_scores(query, key, offsets, frequencies):
    if offsets.dim() > 2 and (offsets[..., 0, :] == offsets[:1, ..., 0, :]).all():
        offsets = offsets[:1]
    cos = (offsets.unsqueeze(-1) * frequencies).cos()
    sin = (offsets.unsqueeze(-1) * frequencies).sin()
    a, b = query.unsqueeze(-2)[..., 0::2], query.unsqueeze(-2)[..., 1::2]
    c, d = key.unsqueeze(-3)[..., 0::2], key.unsqueeze(-3)[..., 1::2]
    return ((a * c + b * d) * cos + (b * c - a * d) * sin).sum(dim=-1)
