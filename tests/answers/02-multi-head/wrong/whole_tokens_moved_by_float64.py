"""Moves all tokens by a permutation matrix in float64: whole numbers beyond 2^53 are rounded.

Loses: there-and-back-precision
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    p = torch.eye(len(order), dtype=torch.float64)[order]
    if mask is not None:
        mask = mask[..., order, :][..., order]
    result = attend((p @ x.double()).to(x.dtype), mask)
    return (p.T @ result.double()).to(result.dtype)
