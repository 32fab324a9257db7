"""Counts the accepted tokens in the dtype of the logits; half precision skips numbers.

Loses: greedy-precision
"""

import torch


# %% greedy-answer
def verify_greedy(
    logits: torch.Tensor, drafts: torch.Tensor, lengths: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    chosen = logits.argmax(dim=-1)  # (batch, n + 1)
    n = drafts.shape[1]
    drafted = torch.arange(n, device=drafts.device) < lengths.unsqueeze(1)
    right = (drafts == chosen[:, :n]) & drafted
    accepted = right.to(logits.dtype).cumprod(dim=1).sum(dim=1).long()
    next_tokens = chosen.gather(1, accepted.unsqueeze(1)).squeeze(1)
    return accepted, next_tokens
