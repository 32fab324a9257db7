"""All texts stop where the first one stops.

Loses: greedy, greedy-precision
"""

import torch


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    chosen = logits.argmax(dim=-1)  # (batch, n + 1)
    drafted = torch.arange(drafts.shape[1]) < lengths.unsqueeze(-1)  # (batch, n)
    right = drafted & (chosen[:, :-1] == drafts)
    accepted = right.long().cumprod(dim=-1).sum(dim=-1)
    accepted = accepted.min().expand(len(accepted))
    return accepted, chosen.gather(1, accepted.unsqueeze(-1)).squeeze(-1)
