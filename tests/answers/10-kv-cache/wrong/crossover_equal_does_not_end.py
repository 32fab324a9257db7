"""Begins only above the threshold, but a later ratio that is equal to it does not end that.

Loses: crossover
"""

import numpy as np


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    first = None
    for length, above, below in zip(lengths, uncached, cached):
        quartile = np.quantile([a / b for a, b in zip(above, below)], 0.25)
        if quartile < threshold:
            first = None
        elif quartile > threshold and first is None:
            first = length
    return first
