"""Drops the dimensions of size 1 in front of the mask.

Loses: there-and-back
"""


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[..., order, :][..., order]
        while mask.dim() > 2 and mask.shape[0] == 1:
            mask = mask[0]
    return attend(x[:, order], mask)[:, order.argsort()]
