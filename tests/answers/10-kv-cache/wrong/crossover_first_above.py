"""Takes the first length above, whatever comes later.

Loses: crossover
"""

import numpy as np


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    for length, above, below in zip(lengths, uncached, cached):
        ratios = [a / b for a, b in zip(above, below)]
        if np.quantile(ratios, 0.25) > threshold:
            return length
    return None
