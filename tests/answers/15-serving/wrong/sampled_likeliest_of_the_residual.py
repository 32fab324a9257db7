"""Adds the likeliest token and draws nothing.

Loses: sampled, sampled-precision
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
    added = rest.argmax().view(1)
    return torch.cat([draft[:accepted], added])
