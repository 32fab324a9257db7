"""Boundaries found by bisection, and searched by torch."""

import torch


# %% bucket-answer
def relative_position_bucket(relative_position, bidirectional, num_buckets=32, max_distance=128):
    n = num_buckets // (1 + bidirectional)
    e = n // 2
    starts = list(range(1, e + 1))
    for t in range(1, n - e):
        low, high = e, max_distance
        while low < high:
            middle = (low + high) // 2
            if middle ** (n - e) >= max_distance**t * e ** (n - e - t):
                high = middle
            else:
                low = middle + 1
        starts.append(low)
    j = torch.abs(relative_position) if bidirectional else torch.relu(-relative_position)
    found = torch.searchsorted(torch.tensor(starts), j, right=True)
    return found + n * (relative_position > 0) if bidirectional else found
