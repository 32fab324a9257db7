"""Moves the rows of the mask and not its columns.

Loses: there-and-back
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[..., order, :]
    return attend(x[:, order], mask)[:, torch.argsort(order)]
