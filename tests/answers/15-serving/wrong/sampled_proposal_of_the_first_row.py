"""Takes q of the first row for all drafted tokens.

Loses: sampled
"""

import torch


# %% sampled-answer
def verify_sampled(target, proposal, draft, uniforms):
    p, q = target.double(), proposal.double()
    accepted = 0
    for row, token in enumerate(draft.tolist()):
        if uniforms[row] >= p[row, token] / q[0, token]:
            break
        accepted += 1
    rest = p[accepted]
    if accepted < len(draft):
        rest = torch.relu(rest - q[accepted])
    sums = rest.cumsum(dim=0)
    added = torch.searchsorted(sums, uniforms[-1:] * sums[-1], right=True)
    return torch.cat([draft[:accepted], added])
