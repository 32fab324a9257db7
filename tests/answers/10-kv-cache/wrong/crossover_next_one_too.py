"""Takes the first length above the threshold if the next one, and not every later one, is too.

Loses: crossover
"""

import numpy as np


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    above = [
        np.quantile([a / b for a, b in zip(slow, fast, strict=True)], 0.25) > threshold
        for slow, fast in zip(uncached, cached, strict=True)
    ]
    for place, length in enumerate(lengths):
        if all(above[place : place + 2]):
            return length
    return None
