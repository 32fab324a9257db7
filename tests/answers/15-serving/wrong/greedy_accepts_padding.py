"""Accepts padding that happens to agree.

Loses: greedy
"""


# %% greedy-answer
def verify_greedy(logits, drafts, lengths):
    chosen = logits.argmax(dim=-1)  # (batch, n + 1)
    right = chosen[:, :-1] == drafts
    accepted = right.long().cumprod(dim=-1).sum(dim=-1)
    return accepted, chosen.gather(1, accepted.unsqueeze(-1)).squeeze(-1)
