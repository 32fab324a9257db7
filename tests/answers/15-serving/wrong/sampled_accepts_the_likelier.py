"""Accepts whenever the model finds the token at least as likely as the draft does, and never else.

Loses: sampled, sampled-precision
"""

import torch


# %% sampled-answer
def verify_sampled(target, proposal, draft, uniforms):
    p, q = target.double(), proposal.double()
    accepted = 0
    for row, token in enumerate(draft.tolist()):
        if p[row, token] < q[row, token]:
            break
        accepted += 1
    rest = p[accepted]
    if accepted < len(draft):
        rest = torch.relu(rest - q[accepted])
    sums = rest.cumsum(dim=0)
    added = torch.searchsorted(sums, uniforms[-1:] * sums[-1], right=True)
    return torch.cat([draft[:accepted], added])
