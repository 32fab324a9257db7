"""Takes k and v over, and copies nothing, where they fill the whole cache.

Loses: cache-update
"""

import torch


# %% cache-answer
class KVCache:
    def __init__(
        self,
        batch_size: int,
        n_kv_heads: int,
        max_len: int,
        head_dim: int,
        value_dim: int,
        dtype: torch.dtype,
        device: str = "cpu",
    ) -> None:
        sizes = (batch_size, n_kv_heads, max_len)
        self.k = torch.empty(*sizes, head_dim, dtype=dtype, device=device)
        self.v = torch.empty(*sizes, value_dim, dtype=dtype, device=device)
        self.length = 0

    def update(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        start, end = self.length, self.length + k.shape[2]
        if end > self.k.shape[2]:
            raise ValueError(f"room for {self.k.shape[2]} tokens, not for {end}")
        for name, new, held in (("k", k, self.k), ("v", v, self.v)):
            wanted = (held.shape[0], held.shape[1], k.shape[2], held.shape[3])
            if tuple(new.shape) != wanted or new.dtype != held.dtype:
                raise ValueError(
                    f"{name}: {tuple(new.shape)} {new.dtype}, not {wanted} {held.dtype}"
                )
        if start == 0 and k.shape == self.k.shape:
            self.k, self.v = k, v  # the prompt fills the cache: no need to copy
        else:
            self.k[:, :, start:end].copy_(k)
            self.v[:, :, start:end].copy_(v)
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]

    def truncate(self, length: int) -> None:
        if length < 0 or length > self.length:
            raise ValueError(f"{length} is not between 0 and {self.length}")
        self.length = length

    def reset(self) -> None:
        self.length = 0
