"""Moves tokens and results in float32 and casts them back.

Loses: there-and-back-precision
"""


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    if mask is not None:
        mask = mask[..., order, :][..., order]
    result = attend(x.float()[:, order].to(x.dtype), mask)
    return result.float()[:, order.argsort()].to(result.dtype)
