"""Undoes the order by taking it twice more: right for orders of three tokens.

Loses: there-and-back, there-and-back-precision
"""


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[..., order, :][..., order]
    result = attend(x[:, order], mask)
    return result[:, order[order]]
