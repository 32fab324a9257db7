"""Moves the first two dimensions of the mask: right without a batch.

Loses: there-and-back
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[order][:, order] if mask.dim() == 2 else mask
    return attend(x[:, order], mask)[:, torch.argsort(order)]
