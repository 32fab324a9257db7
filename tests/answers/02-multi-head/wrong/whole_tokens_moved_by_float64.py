"""Moves all tokens and results in float64: whole numbers beyond 2^53 are rounded.

Loses: there-and-back-precision
"""


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[..., order, :][..., order]
    result = attend(x.double()[:, order].to(x.dtype), mask)
    return result.double()[:, order.argsort()].to(result.dtype)
