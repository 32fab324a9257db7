"""window computes e^(2B) / ε before it takes the logarithm."""

import math


# %% window-answer
def window(slopes, epsilon, bound):
    return (math.log(math.exp(2 * bound) / epsilon) / slopes).ceil().long()
