"""The mask is moved with at most two dimensions in front.

Loses: there-and-back
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        if mask.dim() == 2:
            mask = mask[order][:, order]
        elif mask.dim() == 3:
            mask = mask[:, order][:, :, order]
        else:
            mask = mask[:, :, order][:, :, :, order]
    return attend(x[:, order], mask)[:, torch.argsort(order)]
