"""Compares the drafted tokens in int32, which knows only the last 32 bits of each.

Loses: greedy-precision
"""

import torch


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    chosen = logits.argmax(dim=-1)
    drafted = torch.arange(drafts.shape[1]) < lengths.unsqueeze(-1)
    right = drafted & (chosen[:, :-1] == drafts.int())
    accepted = right.long().cumprod(dim=-1).sum(dim=-1)
    return accepted, chosen.gather(1, accepted.unsqueeze(-1)).squeeze(-1)
