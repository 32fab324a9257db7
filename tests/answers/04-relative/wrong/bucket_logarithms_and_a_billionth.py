"""Adds 1e-9 to the logarithms, and so begins a bucket too early where one is nearer.

Loses: bucket-exact
"""

import math

import torch


# %% bucket-answer
def relative_position_bucket(relative_position, bidirectional, num_buckets=32, max_distance=128):
    n = num_buckets // 2 if bidirectional else num_buckets
    e = n // 2
    distance = relative_position.abs() if bidirectional else (-relative_position).clamp(min=0)
    far = distance.clamp(min=e).double()
    g = (n - e) * torch.log(far / e) / math.log(max_distance / e)
    bucket = torch.where(distance < e, distance, (e + (g + 1e-9).floor().long()).clamp(max=n - 1))
    return bucket + n * (relative_position > 0) if bidirectional else bucket
