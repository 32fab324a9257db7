"""Fails where no token was drafted.

Loses: greedy, greedy-precision
"""

import torch


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    chosen = logits.argmax(dim=-1)  # (batch, n + 1)
    drafted = torch.arange(drafts.shape[1]) < lengths.unsqueeze(-1)  # (batch, n)
    right = drafted & (chosen[:, :-1] == drafts)
    wrong = torch.cat([~right, torch.ones_like(right[:, :1])], dim=-1)
    accepted = wrong.long().argmax(dim=-1)
    return accepted, chosen.gather(1, accepted.unsqueeze(-1)).squeeze(-1)
