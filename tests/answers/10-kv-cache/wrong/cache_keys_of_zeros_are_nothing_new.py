"""Adds tokens only if some number of their keys is not 0.

Loses: cache-update, cache-limits
"""

import torch


# %% cache-answer
class KVCache:
    def __init__(self, batch_size, n_kv_heads, max_len, head_dim, value_dim, dtype, device="cpu"):
        sizes = (batch_size, n_kv_heads, max_len)
        self.keys = torch.empty(*sizes, head_dim, dtype=dtype, device=device)
        self.values = torch.empty(*sizes, value_dim, dtype=dtype, device=device)
        self.length = 0

    def update(self, k, v):
        start, end = self.length, self.length + k.shape[2]
        for new, held in ((k, self.keys), (v, self.values)):
            fitting = (*held.shape[:2], k.shape[2], held.shape[3])
            if tuple(new.shape) != fitting or new.dtype != held.dtype:
                raise ValueError(f"{tuple(new.shape)} {new.dtype} in place of {fitting}")
        if end > self.keys.shape[2]:
            raise ValueError(f"{end} tokens, room for {self.keys.shape[2]}")
        if k.any():
            self.keys[:, :, start:end] = k
            self.values[:, :, start:end] = v
            self.length = end
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def truncate(self, length):
        if not 0 <= length <= self.length:
            raise ValueError(f"{length} of {self.length}")
        self.length = length

    def reset(self):
        self.length = 0
