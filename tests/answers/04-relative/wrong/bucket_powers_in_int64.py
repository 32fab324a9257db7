"""The inequality in whole numbers, but in int64, which overflows.

Loses: bucket-back, bucket-both, bucket-exact
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

    bucket = distance.clamp(max=exact)
    for t in range(1, spread):
        reach = torch.tensor(max_distance) ** t * torch.tensor(exact) ** (spread - t)
        bucket = bucket + (distance**spread >= reach)
    return first + bucket
