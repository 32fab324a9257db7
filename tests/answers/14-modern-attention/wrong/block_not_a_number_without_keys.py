"""Subtracts -inf from -inf for a query that has seen no key.

Loses: block, block-precision
"""

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    shrink = torch.exp(largest - new_largest)
    terms = torch.exp(scores - new_largest.unsqueeze(-1))
    new_total = shrink * total + terms.sum(dim=-1)
    return new_largest, new_total, shrink.unsqueeze(-1) * weighted + terms @ value
