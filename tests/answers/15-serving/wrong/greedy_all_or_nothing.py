"""Accepts a draft as a whole or not at all.

Loses: greedy, greedy-precision
"""

import torch


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    chosen = logits.argmax(dim=-1)  # (batch, n + 1)
    drafted = torch.arange(drafts.shape[1]) < lengths.unsqueeze(-1)  # (batch, n)
    right = drafted & (chosen[:, :-1] == drafts)
    whole = right.sum(dim=-1) == lengths
    accepted = torch.where(whole, lengths, 0)
    return accepted, chosen.gather(1, accepted.unsqueeze(-1)).squeeze(-1)
