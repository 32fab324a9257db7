"""Nothing is clamped: beyond the largest distance the numbers go on.

Loses: bucket-back, bucket-both
"""

import math

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
    ratio = distance.clamp(min=exact).double() / exact
    steps = torch.round(ratio.log() / math.log(max_distance / exact) * spread, decimals=12)
    far = exact + steps.floor().long()
    return first + torch.where(distance < exact, distance, far)
