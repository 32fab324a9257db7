"""Keeps the last number away from 0 and 1.

Loses: sampled-precision
"""

import torch


# %% sampled-answer
def verify_sampled(target, proposal, draft, uniforms):
    p, q = target.double(), proposal.double()
    accepted = 0
    for row, token in enumerate(draft.tolist()):
        if uniforms[row] >= p[row, token] / q[row, token]:
            break
        accepted += 1
    rest = p[accepted]
    if accepted < len(draft):
        rest = torch.relu(rest - q[accepted])
    sums = rest.cumsum(dim=0)
    last = uniforms[-1:].clamp(1e-6, 1 - 1e-6)
    added = torch.searchsorted(sums, last * sums[-1], right=True)
    return torch.cat([draft[:accepted], added])
