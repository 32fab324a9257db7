"""Distances are taken in int32, where the smallest number has no absolute value.

Loses: bucket-both
"""

import torch


# %% bucket-answer
def relative_position_bucket(relative_position, bidirectional, num_buckets=32, max_distance=128):
    n = num_buckets // 2 if bidirectional else num_buckets
    e = n // 2
    starts = list(range(1, e + 1))
    for t in range(1, n - e):
        j = starts[-1]
        while j ** (n - e) < max_distance**t * e ** (n - e - t):
            j += 1
        starts.append(j)
    if bidirectional:
        distance = relative_position.int().abs()
    else:
        distance = (-relative_position).clamp(min=0)
    bucket = torch.searchsorted(torch.tensor(starts), distance, right=True)
    if bidirectional:
        bucket = bucket + n * (relative_position > 0)
    return bucket
