"""Trusts that attention is equivariant and reorders nothing.

Loses: there-and-back, there-and-back-precision
"""


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    return attend(x, mask)
