"""Divides the residual by its sum plus 1e-8.

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
    sums = (rest / (rest.sum() + 1e-8)).cumsum(dim=0)
    added = torch.searchsorted(sums, uniforms[-1:], right=True)
    added = added.clamp_max(len(sums) - 1)
    return torch.cat([draft[:accepted], added])
