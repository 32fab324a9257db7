"""Logarithms in float64: the last digit moves some distances to the bucket before.

Loses: bucket-exact
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
    steps = ratio.log() / math.log(max_distance / exact) * spread
    far = exact + steps.floor().long().clamp(max=spread - 1)
    return first + torch.where(distance < exact, distance, far)
