"""Always takes 1.2.

Loses: crossover, crossover-precision
"""

import numpy as np


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    first = None
    for length, above, below in zip(lengths, uncached, cached):
        ratios = [a / b for a, b in zip(above, below)]
        if np.quantile(ratios, 0.25) <= 1.2:
            first = None
        elif first is None:
            first = length
    return first
