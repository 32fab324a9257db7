"""Leaves out a head whose outputs are all 0: right values, and no gradient for that head.

Loses: head-contributions
"""

import torch


# %% head-contributions-answer
def head_contributions(heads: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    terms = []
    for head, block in zip(heads.unbind(1), w_o.chunk(heads.shape[1]), strict=True):
        silent = head.new_zeros(*head.shape[:2], w_o.shape[1])
        terms.append(head @ block if head.any() else silent)
    return torch.stack(terms, dim=1)
