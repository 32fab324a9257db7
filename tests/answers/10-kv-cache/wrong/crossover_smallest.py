"""Asks that every round is above.

Loses: crossover
"""


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    first = None
    for length, above, below in zip(lengths, uncached, cached):
        ratios = [a / b for a, b in zip(above, below)]
        if min(ratios) <= threshold:
            first = None
        elif first is None:
            first = length
    return first
