"""Refuses what is too small and cuts off what is too large.

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
        start, end = self.length, self.length + k.shape[2]
        for new, held in ((k, self.keys), (v, self.values)):
            fitting = (*held.shape[:2], k.shape[2], held.shape[3])
            small = any(a < b for a, b in zip(new.shape, fitting, strict=True))
            if small or new.shape[2] != fitting[2] or new.dtype != held.dtype:
                raise ValueError(f"{tuple(new.shape)} {new.dtype} in place of {fitting}")
        if end > self.keys.shape[2]:
            raise ValueError(f"{end} tokens, room for {self.keys.shape[2]}")
        self.keys[:, :, start:end] = self.cut(k, self.keys)
        self.values[:, :, start:end] = self.cut(v, self.values)
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def cut(self, new, held):
        texts, heads, _, width = held.shape
        return new[:texts, :heads, :, :width]

    def truncate(self, length):
        if not 0 <= length <= self.length:
            raise ValueError(f"{length} of {self.length}")
        self.length = length

    def reset(self):
        self.length = 0
