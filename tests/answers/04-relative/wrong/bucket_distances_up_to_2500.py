"""A table of 2500 distances, too short for some settings.

Loses: bucket-exact
"""

import torch


# %% bucket-answer
def relative_position_bucket(relative_position, bidirectional, num_buckets=32, max_distance=128):
    if bidirectional:
        size = num_buckets // 2
        first = torch.where(relative_position > 0, size, 0)
        distance = relative_position.abs()
    else:
        size, first = num_buckets, 0
        distance = (-relative_position).clamp(min=0)
    exact = size // 2
    spread = size - exact
    starts = list(range(1, exact + 1))
    for t in range(1, spread):
        start = starts[-1]
        while start**spread < max_distance**t * exact ** (spread - t):
            start += 1
        starts.append(start)
    table = (torch.arange(2500).unsqueeze(-1) >= torch.tensor(starts)).sum(dim=-1)
    return first + table[distance.clamp(max=2499)]
