"""The inequality in float64, where large powers are rounded or infinite.

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
    bucket = torch.minimum(distance, torch.tensor(exact))
    power = distance.double() ** spread
    for t in range(1, spread):
        limit = torch.tensor(max_distance, dtype=torch.float64) ** t * float(exact) ** (spread - t)
        bucket = bucket + (power >= limit)
    return first + bucket
