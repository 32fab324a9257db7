"""Takes the other kind of quartile, statistics.quantiles' default.

Loses: crossover
"""

import statistics


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    first = None
    for length, above, below in zip(lengths, uncached, cached):
        ratios = [a / b for a, b in zip(above, below)]
        if statistics.quantiles(ratios, n=4)[0] <= threshold:
            first = None
        elif first is None:
            first = length
    return first
