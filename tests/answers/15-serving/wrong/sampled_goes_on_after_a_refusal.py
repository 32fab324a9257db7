"""Drops a refused token and goes on with the next one.

Loses: sampled
"""

import torch


# %% sampled-answer
def verify_sampled(target, proposal, draft, uniforms):
    p, q = target.double(), proposal.double()
    rest, tokens = p[-1], []
    for row, token in enumerate(draft.tolist()):
        if uniforms[row] < p[row, token] / q[row, token]:
            tokens.append(token)
        else:
            rest = torch.relu(p[row] - q[row])
    sums = rest.cumsum(dim=0)
    added = torch.searchsorted(sums, uniforms[-1] * sums[-1], right=True)
    return torch.tensor([*tokens, int(added)])
