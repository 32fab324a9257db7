"""Makes a mask that allows everything where there is none.

Loses: there-and-back
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is None:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    return attend(x[:, order], mask[..., order, :][..., order])[:, torch.argsort(order)]
