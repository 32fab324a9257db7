"""Takes for equal what is above the threshold by less than a millionth.

Loses: crossover-precision
"""

import numpy as np


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    first = None
    for length, above, below in zip(lengths, uncached, cached):
        if np.quantile(np.divide(above, below), 0.25) <= threshold + 1e-6:
            first = None
        elif first is None:
            first = length
    return first
