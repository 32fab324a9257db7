"""Where each text has its own offsets, the keys are taken for constants.

Loses: relative
"""


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    a_q, b_q = query.unsqueeze(-2)[..., 0::2], query.unsqueeze(-2)[..., 1::2]
    a_k, b_k = key.unsqueeze(-3)[..., 0::2], key.unsqueeze(-3)[..., 1::2]
    if offsets.dim() > 2:
        a_k, b_k = a_k.detach(), b_k.detach()
    angles = offsets.unsqueeze(-1) * frequencies
    along, across = a_q * a_k + b_q * b_k, b_q * a_k - a_q * b_k
    return (along * angles.cos() + across * angles.sin()).sum(dim=-1)
