"""Divides the times the other way round.

Loses: crossover, crossover-precision
"""

import numpy as np


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    first = None
    for length, above, below in zip(lengths, uncached, cached):
        ratios = [b / a for a, b in zip(above, below)]
        if np.quantile(ratios, 0.25) <= threshold:
            first = None
        elif first is None:
            first = length
    return first
