"""Draws from p where the whole residual is below 1e-12, as if that were rounding.

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
        residual = torch.relu(rest - q[accepted])
        rest = residual if residual.sum() > 1e-12 else rest
    sums = rest.cumsum(dim=0)
    added = torch.searchsorted(sums, uniforms[-1:] * sums[-1], right=True)
    return torch.cat([draft[:accepted], added])
