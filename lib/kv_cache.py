r"""The KV cache: keys and values of earlier tokens, stored for the next one (chapter 10).

:class:`KVCache` holds those of one layer, in memory that is allocated once: a step writes the
new rows and returns views, so nothing of the size of the keys or the values is ever copied.
:class:`DecodeState` holds a whole decoder's: one cache per layer, the keys' positions, which of
them are padding, and the keys and values of cross-attention. Masks follow from it.

Conventions:

- Keys are stored after the position scheme's ``transform``, with ``n_kv_heads`` heads.
- ``length`` counts slots. With left padding a token's slot and its position differ.
- A call that raises changes nothing (``prp-refused``).

Reading a text in chunks with the cache gives the same result as one pass: ``thm-cached-decode``,
chapter 10.

Sources: Shazeer, *Fast Transformer Decoding*, 2019, arXiv:1911.02150, section 2.4.1; Pope et al.,
*Efficiently Scaling Transformer Inference*, 2022, arXiv:2211.05102, section 2.1.
"""

import torch
from torch import Tensor

from lib.masks import hide_future
from lib.shapes import check_sizes

__all__ = ["DecodeState", "KVCache", "kv_cache_bytes"]


def kv_cache_bytes(
    length: int,
    *,
    n_layers: int,
    n_kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    batch_size: int = 1,
    dtype: torch.dtype = torch.float16,
) -> int:
    r"""Bytes of a full cache (``eq-kv-cache-bytes``, chapter 10).

    .. math::

        \begin{aligned}
        &\text{batch} \cdot \text{layers} \cdot \text{kv heads} \cdot \text{length} \\
        &\quad \cdot (\text{head\_dim} + \text{value\_dim}) \cdot \text{bytes per number}
        \end{aligned}

    With ``value_dim == head_dim`` the sum is the well-known factor 2.

    Args:
        length: tokens held per row; t in the chapter.
        n_layers: layers of the decoder; L.
        n_kv_heads: key and value heads per layer; :math:`H_\text{kv}`.
        head_dim: width of a key; :math:`d_k`.
        value_dim: width of a value; :math:`d_v`. It is ``head_dim`` when not given.
        batch_size: rows decoded together; B.
        dtype: dtype of the stored numbers; it decides the bytes per number, b.

    Returns:
        The number of bytes.

    Raises:
        ValueError: if the length or a size is negative.

    Example:
        Llama 2 7B: 32 layers, 32 heads of 128, half precision, 4096 tokens: 2 GiB per row.

        >>> kv_cache_bytes(4096, n_layers=32, n_kv_heads=32, head_dim=128) / 2**30
        2.0
    """
    value_dim = head_dim if value_dim is None else value_dim
    if min(length, n_layers, n_kv_heads, head_dim, value_dim, batch_size) < 0:
        raise ValueError(
            f"no size can be negative, got length={length}, n_layers={n_layers}, "
            f"n_kv_heads={n_kv_heads}, head_dim={head_dim}, value_dim={value_dim}, "
            f"batch_size={batch_size}"
        )
    numbers = batch_size * n_layers * n_kv_heads * length * (head_dim + value_dim)
    return numbers * dtype.itemsize


class KVCache:
    """The keys and values of one layer.

    A step writes its own row and leaves all others in place. Concatenation would copy all rows in
    each step (``prp-concat``, chapter 10).

    Args:
        batch_size: rows decoded together.
        n_kv_heads: key and value heads.
        max_len: slots per row; never grows.
        head_dim: width of a key.
        value_dim: width of a value; ``head_dim`` when not given.
        dtype: dtype of keys and values; torch's default when not given.
        device: where they live; torch's default when not given.

    Attributes:
        length: slots in use, the same in every row.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(
        self,
        batch_size: int,
        n_kv_heads: int,
        max_len: int,
        head_dim: int,
        *,
        value_dim: int | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        value_dim = head_dim if value_dim is None else value_dim
        check_sizes(batch_size=batch_size, n_kv_heads=n_kv_heads, max_len=max_len)
        check_sizes(head_dim=head_dim, value_dim=value_dim)
        shape = (batch_size, n_kv_heads, max_len)
        self._keys = torch.empty(*shape, head_dim, dtype=dtype, device=device)
        self._values = torch.empty(*shape, value_dim, dtype=dtype, device=device)
        self.length = 0

    @property
    def batch_size(self) -> int:
        """Rows decoded together."""
        return self._keys.shape[0]

    @property
    def max_len(self) -> int:
        """Slots per row."""
        return self._keys.shape[2]

    @property
    def nbytes(self) -> int:
        """Bytes allocated, in use or not."""
        return self._keys.nbytes + self._values.nbytes

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add new keys and values; return all of them.

        Args:
            k: ``(batch_size, n_kv_heads, new, head_dim)``.
            v: ``(batch_size, n_kv_heads, new, value_dim)``.

        Returns:
            Keys ``(batch_size, n_kv_heads, length, head_dim)`` and values ``(..., value_dim)``:
            views that a later call to :meth:`truncate` and ``update`` may overwrite.

        Raises:
            ValueError: if shapes, dtypes or devices do not fit, if there is no room (the cache
                is left as it was), or if a gradient would have to flow through the cache.
        """
        self._check("k", k, self._keys)
        self._check("v", v, self._values)
        if k.shape[2] != v.shape[2]:
            raise ValueError(f"{k.shape[2]} new keys came with {v.shape[2]} new values")
        start, end = self.length, self.length + k.shape[2]
        if end > self.max_len:
            raise ValueError(
                f"the cache has max_len={self.max_len} slots and holds {start}: "
                f"{k.shape[2]} more do not fit"
            )
        self._keys[:, :, start:end] = k  # the only copy: the new rows
        self._values[:, :, start:end] = v
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def truncate(self, length: int) -> None:
        """Discard everything from slot ``length`` on.

        Raises:
            ValueError: if ``length`` is negative or more than the cache holds.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate to {length}: the cache holds {self.length}")
        self.length = length

    def reset(self) -> None:
        """Discard everything; the memory stays allocated."""
        self.length = 0

    def _check(self, name: str, new: Tensor, held: Tensor) -> None:
        batch, heads, _, dim = held.shape
        if new.dim() != 4 or new.shape != (batch, heads, new.shape[2], dim):
            needed = (batch, heads, "new", dim)
            raise ValueError(f"{name} has shape {tuple(new.shape)} but the cache needs {needed}")
        if new.dtype != held.dtype:
            raise ValueError(
                f"{name} is {new.dtype} but the cache is {held.dtype}: make it for the dtype, or "
                "under the autocast, that it is used with"
            )
        if new.device != held.device:
            raise ValueError(f"{name} is on {new.device} but the cache is on {held.device}")
        if new.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{name} carries a gradient, which a cache cannot keep (its memory is written "
                "in place): decode under torch.no_grad()"
            )


class DecodeState:
    """Everything a decoder remembers between two calls.

    A token's **slot** is its column in memory, its **position** its number in the text. They
    differ where there is padding, as in the first of two rows here, after a prompt of three
    columns and one step (``prp-left-padding``, chapter 10)::

        slot        0    1    2  |  3
        row 0       -    a    b  |  c        "-" is padding: never seen, position 0
        position    0    0    1  |  2
        row 1       d    e    f  |  g
        position    0    1    2  |  3

    Args:
        caches: one per layer, all empty, of one batch size and one length.
        context_keys_values: per layer, keys ``(batch_size, n_kv_heads, context_len, head_dim)`` and
            values ``(..., value_dim)`` of the encoder's output (``prp-cross-cache``).
        context_mask: ``(batch_size, context_len)``, ``True`` = a real token of the context.

    Attributes:
        length: slots in use.
        batch_size: rows decoded together.
        max_len: slots per row.
        caches: as given.
        context_keys_values: as given.
        context_mask: as given.

    Raises:
        ValueError: if there is no cache, the caches differ in size or are not empty, or the
            context's keys and values are not those of as many layers.
    """

    def __init__(
        self,
        caches: list[KVCache],
        *,
        context_keys_values: list[tuple[Tensor, Tensor]] | None = None,
        context_mask: Tensor | None = None,
    ) -> None:
        sizes = {(cache.batch_size, cache.max_len, cache.length) for cache in caches}
        if len(sizes) != 1 or next(iter(sizes))[2] != 0:
            raise ValueError(
                "need caches of one size, all empty, got (batch_size, max_len, length) of "
                f"{sorted(sizes)}"
            )
        if context_keys_values is not None and len(context_keys_values) != len(caches):
            raise ValueError(
                f"{len(caches)} layers need as many pairs of context keys and values, got "
                f"{len(context_keys_values)}"
            )
        self.caches = caches
        self.context_keys_values = context_keys_values
        self.context_mask = context_mask
        self.batch_size, self.max_len, self.length = next(iter(sizes))
        slots = (self.batch_size, self.max_len)
        device = caches[0]._keys.device
        self._positions = torch.zeros(slots, dtype=torch.int64, device=device)
        self._valid = torch.ones(slots, dtype=torch.bool, device=device)
        # Known without waiting for the GPU: up to which slot there is certainly no padding, and up
        # to which slot positions were counted here, not given.
        self._unpadded_len = self._counted_len = 0

    @property
    def _unpadded(self) -> bool:
        return self._unpadded_len == self.length

    @property
    def _counted(self) -> bool:
        return self._counted_len == self.length

    @property
    def k_positions(self) -> Tensor:
        """``(batch_size or 1, length)``: the positions of all keys; padding has 0."""
        rows = 1 if self._unpadded and self._counted else self.batch_size  # all rows alike
        return self._positions[:rows, : self.length]

    @property
    def valid(self) -> Tensor:
        """``(batch_size, length)``: ``True`` where a key is a real token."""
        return self._valid[:, : self.length]

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values, the context's included."""
        pairs = self.context_keys_values or []
        return sum(cache.nbytes for cache in self.caches) + sum(
            key.nbytes + value.nbytes for key, value in pairs
        )

    @property
    def largest_position(self) -> int | None:
        """A bound on all positions held; ``None`` if the caller chose them."""
        return self.length - 1 if self._counted else None

    def append(
        self, new: int, *, positions: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Register new tokens; each layer's attention adds their keys and values to its cache.

        Args:
            new: number of new tokens per row.
            positions: ``(batch_size or 1, new)``. When not given, each row continues after its
                largest position so far, and padding gets 0.
            mask: ``(batch_size, new)``, ``True`` = a real token; all real when not given.

        Returns:
            The new tokens' positions, ``(batch_size or 1, new)``.

        Raises:
            ValueError: if there is no room. Shapes are not checked here: the model has checked
                them.
        """
        start, end = self.length, self.length + new
        if end > self.max_len:
            raise ValueError(
                f"the cache has max_len={self.max_len} slots and holds {start}: "
                f"{new} more do not fit"
            )
        unpadded = self._unpadded and mask is None
        counted = self._counted and positions is None
        if unpadded and counted:  # a token's position is its slot
            positions = torch.arange(start, end, device=self._valid.device)[None]  # (1, new)
        elif positions is None:
            positions = self._follow(new, mask)  # (batch, new)
        self._positions[:, start:end] = positions
        self._valid[:, start:end] = True if mask is None else mask
        self.length = end
        if unpadded:
            self._unpadded_len = end
        if counted:
            self._counted_len = end
        return positions

    def _follow(self, new: int, mask: Tensor | None) -> Tensor:
        """Positions of ``new`` tokens that follow, row by row, the largest one held."""
        if mask is None:
            mask = self._valid.new_ones(self.batch_size, new)
        start = mask.new_zeros(self.batch_size, 1, dtype=torch.int64)
        if self.length:  # padding counts as -1: a row of padding alone continues at 0
            held = self._positions[:, : self.length].masked_fill(~self.valid, -1)
            start = held.amax(dim=1, keepdim=True) + 1  # (batch, 1)
        return (start + mask.cumsum(dim=1) - 1) * mask

    def mask(self, q_len: int) -> Tensor | None:
        """Which keys the last ``q_len`` tokens may see: no later one, and no padding.

        Args:
            q_len: 1 to ``length``; the queries are the last slots.

        Returns:
            Boolean, broadcastable to ``(batch_size, heads, q_len, length)``; ``None`` if
            everything may be seen, as by one new token when there is no padding.
        """
        seen = None if self._unpadded else self.valid[:, None, None, :]  # (batch, 1, 1, k_len)
        if q_len == 1:
            return seen
        return hide_future(seen, q_len, self.length, self._valid.device)

    def truncate(self, length: int) -> None:
        """Discard everything from slot ``length`` on, in every layer.

        Raises:
            ValueError: if ``length`` is negative or more than is held.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate to {length}: the state holds {self.length}")
        for cache in self.caches:
            cache.truncate(min(length, cache.length))
        self.length = length
        self._unpadded_len = min(length, self._unpadded_len)
        self._counted_len = min(length, self._counted_len)

    def reset(self) -> None:
        """Discard all tokens; the memory and the context stay."""
        self.truncate(0)
