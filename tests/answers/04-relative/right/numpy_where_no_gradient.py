"""Through NumPy, where no gradient is asked for."""

import numpy as np
import torch


# %% differences-answer
def relative_positions(q_positions, k_positions):
    m, n = q_positions.numpy().astype(np.int64), k_positions.numpy().astype(np.int64)
    return torch.from_numpy(np.expand_dims(n, -2) - np.expand_dims(m, -1))


# %% bucket-answer
def relative_position_bucket(relative_position, bidirectional, num_buckets=32, max_distance=128):
    offsets = relative_position.numpy()
    size = num_buckets // 2 if bidirectional else num_buckets
    distance = np.abs(offsets) if bidirectional else np.maximum(-offsets, 0)
    exact, spread = size // 2, size - size // 2
    whole = np.minimum(distance, max_distance).astype(object)  # Python's own whole numbers
    found = np.minimum(distance, exact)
    for t in range(1, spread):
        found = found + (whole**spread >= max_distance**t * exact ** (spread - t)).astype(int)
    if bidirectional:
        found = found + size * (offsets > 0)
    return torch.from_numpy(np.asarray(found, dtype=np.int64))


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    asks = torch.stack((x, p.expand(x.shape))) @ w_q
    asked = torch.stack((x, p.expand(x.shape))) @ w_k
    both = torch.einsum("abmc,dbnc->adbmn", asks, asked)
    return tuple(both.flatten(0, 1))
