"""Reorders the caller's own tokens.

Loses: there-and-back
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[..., order, :][..., order]
    x[:] = x[:, order]
    return attend(x, mask)[:, torch.argsort(order)]
