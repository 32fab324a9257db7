"""Reorders by the inverse and goes back by the order.

Loses: there-and-back, there-and-back-precision
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    inverse = torch.argsort(order)
    if mask is not None:
        mask = mask[..., inverse, :][..., inverse]
    return attend(x[:, inverse], mask)[:, order]
