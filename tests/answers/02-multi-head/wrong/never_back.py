"""Leaves the result in the order of the reordered text.

Loses: there-and-back, there-and-back-precision
"""


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[..., order, :][..., order]
    return attend(x[:, order], mask)
