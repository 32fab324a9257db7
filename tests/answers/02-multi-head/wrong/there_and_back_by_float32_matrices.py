"""Moves tokens and results by permutation matrices in float32 and casts them back.

Loses: there-and-back-precision
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    p = torch.eye(len(order))[order]
    if mask is not None:
        mask = (p @ mask.float() @ p.T).bool()
    result = attend((p @ x.float()).to(x.dtype), mask)
    return (p.T @ result.float()).to(result.dtype)
