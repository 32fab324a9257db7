"""Takes 1 less the common part as the sum of the residual: rows sum to 1 only nearly.

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
        common = torch.minimum(rest, q[accepted]).sum()
        rest = torch.relu(rest - q[accepted])
    sums = rest.cumsum(dim=0)
    total = 1 - common if accepted < len(draft) else sums[-1]
    added = torch.searchsorted(sums, uniforms[-1:] * total, right=True)
    return torch.cat([draft[:accepted], added])
