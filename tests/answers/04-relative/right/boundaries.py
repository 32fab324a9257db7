"""A table of all distances up to the largest, made from exact boundaries and searched."""

import torch


# %% bucket-answer
def relative_position_bucket(relative_position, bidirectional, num_buckets=32, max_distance=128):
    size = num_buckets // 2 if bidirectional else num_buckets
    exact = size // 2
    spread = size - exact
    table, bucket = [], 0
    for j in range(max_distance + 1):
        t = bucket + 1 - exact
        while bucket < size - 1 and (
            j > bucket if t <= 0 else j**spread >= max_distance**t * exact ** (spread - t)
        ):
            bucket += 1
            t += 1
        table.append(bucket)
    behind = torch.tensor(table)[(-relative_position).clamp(0, max_distance)]
    if not bidirectional:
        return behind
    ahead = torch.tensor(table)[relative_position.clamp(0, max_distance)] + size
    return torch.where(relative_position > 0, ahead, behind)


# %% differences-answer
def relative_positions(q_positions, k_positions):
    m, n = q_positions.to(torch.int64), k_positions.to(torch.int64)
    return n[..., None, :] - m[..., :, None]
