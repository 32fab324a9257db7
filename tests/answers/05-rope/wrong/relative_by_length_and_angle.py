"""relative_scores goes through lengths and angles, with the gradient nan at a pair (0, 0).

Loses: relative
"""

import torch


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    angles = offsets.double().unsqueeze(-1) * frequencies
    a, b = query[..., 0::2].unsqueeze(-2), query[..., 1::2].unsqueeze(-2)
    c, d = key[..., 0::2].unsqueeze(-3), key[..., 1::2].unsqueeze(-3)
    radius = torch.hypot(a, b) * torch.hypot(c, d)
    return (radius * torch.cos(torch.atan2(d, c) - torch.atan2(b, a) + angles)).sum(-1)
