"""Makes tensors of the times, in float32 because nothing else was said.

Loses: crossover-precision
"""

import torch


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    first = None
    for length, above, below in zip(lengths, uncached, cached):
        ratios = torch.tensor(above) / torch.tensor(below)
        if torch.quantile(ratios, 0.25).item() <= threshold:
            first = None
        elif first is None:
            first = length
    return first
