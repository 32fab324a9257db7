"""The solution of the equation, not rounded.

Loses: window-test, window-precision
"""

import math


# %% window-answer
def window(slopes, epsilon, bound):
    return (math.log(1 / epsilon) + 2 * bound) / slopes
