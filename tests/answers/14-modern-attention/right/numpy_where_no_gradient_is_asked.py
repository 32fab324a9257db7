"""Right, with NumPy in float64 where no gradients are asked for."""

import numpy as np
import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    dtype = scores.dtype
    s, v, t, z, u = (part.double().numpy() for part in (scores, value, largest, total, weighted))
    top = np.maximum(t, s.max(axis=3))
    level = np.where(np.isinf(top), 0, top)
    old, new = np.exp(t - level), np.exp(s - level[..., None])
    sums = top, old * z + new.sum(axis=3), old[..., None] * u + new @ v
    return tuple(torch.from_numpy(part).to(dtype) for part in sums)


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    dtype, d_k = query.dtype, w_uk.shape[2]
    q, k, v = (part.double().numpy() for part in (query, w_uk, w_uv))
    sent = np.concatenate((q[..., :d_k] @ k.swapaxes(1, 2), q[..., d_k:]), axis=3)
    averages = attend(torch.from_numpy(sent / np.sqrt(q.shape[3])), 1.0)
    return torch.from_numpy(averages.numpy() @ v).to(dtype)
