"""Whole tokens become float64 before attend gets them.

Loses: there-and-back, there-and-back-precision
"""


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[..., order, :][..., order]
    y = x if x.is_floating_point() else x.double()
    return attend(y[:, order], mask)[:, order.argsort()]
