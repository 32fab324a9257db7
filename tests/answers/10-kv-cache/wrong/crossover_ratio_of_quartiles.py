"""Forms the quartiles of the times first, and then their ratio.

Loses: crossover
"""

import numpy as np


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    first = None
    for length, above, below in zip(lengths, uncached, cached):
        ratio = np.quantile(above, 0.25) / np.quantile(below, 0.25)
        if ratio <= threshold:
            first = None
        elif first is None:
            first = length
    return first
