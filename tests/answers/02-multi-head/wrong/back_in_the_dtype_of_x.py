"""The result is written into a tensor with the dtype of x, and not with that of the result.

Loses: there-and-back
"""

import torch


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    moved = None if mask is None else mask[..., order, :][..., order]
    result = attend(x[:, order], moved)
    back = torch.zeros(result.shape, dtype=x.dtype)
    back[:, order] = result.to(x.dtype)
    return back
