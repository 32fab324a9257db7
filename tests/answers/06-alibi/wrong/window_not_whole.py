"""The solution of the equation, not rounded.

Loses: window-test
"""

import math


# %% window-answer
def window(slopes, epsilon, bound):
    return (math.log(1 / epsilon) + 2 * bound) / slopes
