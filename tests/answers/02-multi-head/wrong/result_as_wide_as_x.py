"""Puts the rows into a copy of x: right while the result has its width.

Loses: there-and-back
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[..., order, :][..., order]
    out = torch.zeros_like(x)
    out[:, order] = attend(x[:, order], mask)
    return out
