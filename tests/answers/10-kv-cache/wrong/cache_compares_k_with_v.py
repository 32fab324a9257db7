"""Compares the texts and heads of k with those of v alone: both of one text are stretched.

Loses: cache-limits
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
        end = self.length + k.shape[2]
        if k.shape[:3] != v.shape[:3]:
            raise ValueError(f"{tuple(k.shape)} and {tuple(v.shape)} do not go together")
        for new, held in ((k, self.keys), (v, self.values)):
            if new.shape[3] != held.shape[3] or new.dtype != held.dtype:
                raise ValueError(f"{tuple(new.shape)} {new.dtype} does not fit")
        if end > self.keys.shape[2]:
            raise ValueError(f"no room for {end} tokens")
        self.keys[:, :, self.length : end] = k
        self.values[:, :, self.length : end] = v
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def truncate(self, length):
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot keep {length} of {self.length}")
        self.length = length

    def reset(self):
        self.length = 0
