"""If k holds no new token the call returns at once, whatever v is.

Loses: cache-limits
"""

import torch


# %% cache-answer
class KVCache:
    """The keys and values of one layer, in memory that is taken once."""

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
        """Take memory for `max_len` tokens."""
        sizes = batch_size, n_kv_heads, max_len
        self.keys = torch.empty((*sizes, head_dim), dtype=dtype, device=device)
        self.values = torch.empty((*sizes, value_dim), dtype=dtype, device=device)
        self.max_len = max_len
        self.length = 0

    def update(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Add new tokens, and return all that are held."""
        if k.dim() == 4 and k.shape[2] == 0:
            return self.keys[:, :, : self.length], self.values[:, :, : self.length]
        for name, new, memory in (("k", k, self.keys), ("v", v, self.values)):
            batch, heads, _, width = memory.shape
            if new.dim() != 4 or (new.shape[0], new.shape[1], new.shape[3]) != (
                batch,
                heads,
                width,
            ):
                raise ValueError(f"{name} has the sizes {tuple(new.shape)}")
            if new.dtype != memory.dtype:
                raise ValueError(f"{name} has the dtype {new.dtype}, not {memory.dtype}")
        if k.shape[2] != v.shape[2]:
            raise ValueError("k and v hold different numbers of tokens")
        end = self.length + k.shape[2]
        if end > self.max_len:
            raise ValueError(f"no room for {end} tokens")
        self.keys[:, :, self.length : end] = k
        self.values[:, :, self.length : end] = v
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def truncate(self, length: int) -> None:
        """Keep the oldest `length` tokens and forget the others."""
        if length < 0 or length > self.length:
            raise ValueError(f"cannot keep {length} of {self.length} tokens")
        self.length = length

    def reset(self) -> None:
        """Forget all tokens; there is room for `max_len` again."""
        self.length = 0
