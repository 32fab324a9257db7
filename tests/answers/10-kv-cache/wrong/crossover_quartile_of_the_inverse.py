"""Inverts the third quartile of cached / uncached: between two ratios another number.

Loses: crossover
"""

import numpy as np


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    first = None
    for t, above, below in zip(lengths, uncached, cached, strict=True):
        ratios = [b / a for a, b in zip(above, below, strict=True)]
        if 1 / np.quantile(ratios, 0.75) > threshold:
            first = t if first is None else first
        else:
            first = None
    return first
