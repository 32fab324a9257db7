"""Cosine and sine of the distance; the smallest int64 has no absolute value.

Loses: relative-precision
"""


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    a_q, b_q = query.unsqueeze(-2)[..., 0::2], query.unsqueeze(-2)[..., 1::2]
    a_k, b_k = key.unsqueeze(-3)[..., 0::2], key.unsqueeze(-3)[..., 1::2]
    angles = offsets.abs().unsqueeze(-1) * frequencies
    sign = offsets.sign().unsqueeze(-1)
    along, across = a_q * a_k + b_q * b_k, b_q * a_k - a_q * b_k
    return (along * angles.cos() + sign * across * angles.sin()).sum(dim=-1)
