"""window takes a billionth of a token off before it rounds up."""

import math


# %% window-answer
def window(slopes, epsilon, bound):
    return ((2 * bound - math.log(epsilon)) / slopes - 1e-9).ceil().long()
