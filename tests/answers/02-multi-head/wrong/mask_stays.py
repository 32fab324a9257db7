"""Leaves the mask where it was.

Loses: there-and-back
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    return attend(x[:, order], mask)[:, torch.argsort(order)]
