"""Moves the mask by matrix products, so that attend gets floating-point numbers.

Loses: there-and-back
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    p = torch.eye(len(order), dtype=torch.float64)[order]
    if mask is not None:
        mask = p @ mask.double() @ p.T
    return attend(x[:, order], mask)[:, order.argsort()]
