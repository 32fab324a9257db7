"""Moves a mask also where there is none.

Loses: there-and-back, there-and-back-precision
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    result = attend(x[:, order], mask[..., order, :][..., order])
    return result[:, torch.argsort(order)]
