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

import copy

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
        &\quad \cdot (\text{head\_dim} + \text{value\_dim}) \\
        &\quad \cdot \text{bytes per number}
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
        batch_size: as given, like the other sizes.
        n_kv_heads: likewise.
        max_len: likewise.
        head_dim: likewise.
        value_dim: likewise.
        dtype: likewise.
        device: likewise.

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
        like = torch.empty(0, dtype=dtype, device=device)  # fills in torch's defaults
        self.batch_size, self.n_kv_heads, self.max_len = batch_size, n_kv_heads, max_len
        self.head_dim, self.value_dim = head_dim, value_dim
        self.dtype, self.device = like.dtype, like.device
        self.length = 0
        self._allocate()

    def _allocate(self) -> None:
        self._keys = self._empty(self.max_len, self.head_dim)
        self._values = self._empty(self.max_len, self.value_dim)

    def _empty(self, slots: int, dim: int, dtype: torch.dtype | None = None) -> Tensor:
        """Memory for some slots of every row and head."""
        shape = (self.batch_size, self.n_kv_heads, slots, dim)
        return torch.empty(shape, dtype=dtype or self.dtype, device=self.device)

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
        self._check("k", k, self.head_dim)
        self._check("v", v, self.value_dim)
        if k.shape[2] != v.shape[2]:
            raise ValueError(f"{k.shape[2]} new keys came with {v.shape[2]} new values")
        if self.length + k.shape[2] > self.max_len:
            raise ValueError(
                f"the cache has max_len={self.max_len} slots and holds {self.length}: "
                f"{k.shape[2]} more do not fit"
            )
        return self._store(k, v)

    def _store(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """:meth:`update`, after the checks."""
        start, end = self.length, self.length + k.shape[2]
        self._keys[:, :, start:end] = k  # the only copy: the new rows
        self._values[:, :, start:end] = v
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def visible(self, slots: Tensor, q_slots: Tensor) -> Tensor | None:
        """Which slots a query may see, among those that are not later than it.

        Args:
            slots: ``(k_len,)``, the slots of the keys that :meth:`update` returns.
            q_slots: ``(q_len,)``, the slots of the queries.

        Returns:
            Boolean ``(q_len, k_len)``; ``None`` if all of them.
        """
        return None

    def k_len(self, new: int) -> int:
        """How many keys :meth:`update` returns when it is given ``new`` ones."""
        return self.length + new

    def slots(self, length: int) -> Tensor | None:
        """Which slots :meth:`update` returns when it brings the cache to ``length`` slots.

        Returns:
            ``(k_len,)``, in the order of the keys; ``None`` if all, in their own order.
        """
        return None

    def fork(self) -> "KVCache":
        """A second cache with the same content; a change of one leaves the other as it is."""
        return copy.deepcopy(self)

    def truncate(self, length: int) -> None:
        """Discard everything from slot ``length`` on.

        Raises:
            ValueError: if ``length`` is negative or more than the cache holds.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate to {length}: the cache holds {self.length}")
        self._drop(length)
        self.length = length

    def _drop(self, length: int) -> None:
        """:meth:`truncate`, after the check: here, later rows will be overwritten."""

    def reset(self) -> None:
        """Discard everything; the memory stays allocated."""
        self.truncate(0)

    def _check(self, name: str, new: Tensor, dim: int) -> None:
        batch, heads = self.batch_size, self.n_kv_heads
        if new.dim() != 4 or new.shape != (batch, heads, new.shape[2], dim):
            needed = (batch, heads, "new", dim)
            raise ValueError(f"{name} has shape {tuple(new.shape)} but the cache needs {needed}")
        if new.dtype != self.dtype:
            raise ValueError(
                f"{name} is {new.dtype} but the cache is {self.dtype}: make it for the dtype, or "
                "under the autocast, that it is used with"
            )
        if new.device != self.device:
            raise ValueError(f"{name} is on {new.device} but the cache is on {self.device}")
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
        caches: one per layer, all empty, of one batch size and one length. All keep the same
            slots, because positions and masks are the same for all layers.
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
        ValueError: if there is no cache, the caches differ in size, keep different slots or are
            not empty, or the context's keys and values are not those of as many layers.
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
        if not _keep_the_same_slots(caches):
            kinds = ", ".join(type(cache).__name__ for cache in caches)
            raise ValueError(
                "need caches that keep the same slots, because all layers share positions and "
                f"masks, got caches of kinds {kinds}: the last of {caches[0].max_len} tokens would "
                "not see the same keys in all of them"
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
        device = caches[0].device
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
        """The positions of the keys, ``(batch_size or 1, k_len)``; padding has 0.

        ``k_len`` is ``length``, unless the caches have dropped some of the keys.
        """
        rows = 1 if self._unpadded and self._counted else self.batch_size  # all rows alike
        slots = self.caches[0].slots(self.length)
        return (
            self._positions[:rows, : self.length]
            if slots is None
            else self._positions[:rows, slots]
        )

    @property
    def in_order(self) -> bool:
        """Whether the keys are those of all slots, the first one first."""
        return self.caches[0].slots(self.length) is None

    @property
    def valid(self) -> Tensor:
        """``True`` where a key is a real token, ``(batch_size, length)``."""
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
            Boolean, broadcastable to ``(batch_size, heads, q_len, k_len)``; ``None`` if
            everything may be seen, as by one new token when there is no padding.
        """
        slots = self.caches[0].slots(self.length)
        if slots is not None:
            return self._mask_of(slots, q_len)
        seen = None if self._unpadded else self.valid[:, None, None, :]  # (batch, 1, 1, k_len)
        if q_len == 1:
            return seen
        return hide_future(seen, q_len, self.length, self._valid.device)

    def _mask_of(self, slots: Tensor, q_len: int) -> Tensor:
        """The mask where the caches return some of the slots, in an order of their own."""
        q_slots = torch.arange(self.length - q_len, self.length, device=slots.device)
        mask = slots <= q_slots[:, None]  # (q_len, k_len)
        visible = self.caches[0].visible(slots, q_slots)
        mask = mask if visible is None else mask & visible
        return mask if self._unpadded else mask & self._valid[:, None, None, slots]

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

    def fork(self) -> "DecodeState":
        """A second state with the same tokens that can go on independently; contexts are shared."""
        forked = copy.copy(self)
        forked.caches = [cache.fork() for cache in self.caches]
        forked._positions, forked._valid = self._positions.clone(), self._valid.clone()
        return forked


def _keep_the_same_slots(caches: list[KVCache]) -> bool:
    """Whether the last token of a full text sees the same slots in every layer."""
    slots = torch.arange(caches[0].max_len, device=caches[0].device)
    first, *others = (cache.visible(slots, slots[-1:]) for cache in caches)
    if first is None:
        return all(other is None for other in others)
    return all(other is not None and torch.equal(first, other) for other in others)
