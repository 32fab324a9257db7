r"""Caches that save memory: in blocks, quantized, or of a window (chapter 15).

Each is a :class:`lib.kv_cache.KVCache` and takes its place in a decoder, through the argument
``make_cache`` of :meth:`lib.transformer.Decoder.decode_state`:

========================  ==================================  ==================================
cache                     what it saves                       what comes back
========================  ==================================  ==================================
:class:`PagedCache`       room that is reserved, not used;    what was stored, every number of it
                          a prefix that texts have in common
:class:`QuantizedCache`   bits per number                     each number within half a step, while
                                                              nothing is taken back
:class:`WindowCache`      tokens out of reach                 what was stored, of fewer tokens
========================  ==================================  ==================================

The classes show where each number is. ``update`` collects what it returns into new tensors;
a kernel made for a cache reads blocks, codes or the ring where they are.

Sources: Kwon et al., *PagedAttention*, 2023, arXiv:2309.06180, section 4; Liu et al., *KIVI*,
2024, arXiv:2402.02750, section 3; Xiao et al., *Attention Sinks*, 2024, arXiv:2309.17453,
section 3; Beltagy et al., *Longformer*, 2020, arXiv:2004.05150, section 3.1.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lib.kv_cache import KVCache
from lib.shapes import check_sizes

__all__ = [
    "BlockPool",
    "PagedCache",
    "Quantized",
    "QuantizedCache",
    "WindowCache",
    "dequantize",
    "quantize",
]


class BlockPool:
    """Blocks of memory that the caches of many texts and layers share.

    Args:
        n_blocks: blocks in the pool.
        n_kv_heads: key and value heads.
        block_size: slots per block.
        head_dim: width of a key.
        value_dim: width of a value; ``head_dim`` when not given.
        dtype: dtype of keys and values; torch's default when not given.
        device: where they live; torch's default when not given.

    Attributes:
        keys: ``(n_blocks, n_kv_heads, block_size, head_dim)``.
        values: ``(n_blocks, n_kv_heads, block_size, value_dim)``.
        block_size: as given.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(
        self,
        n_blocks: int,
        n_kv_heads: int,
        block_size: int,
        head_dim: int,
        *,
        value_dim: int | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        value_dim = head_dim if value_dim is None else value_dim
        check_sizes(n_blocks=n_blocks, n_kv_heads=n_kv_heads, block_size=block_size)
        check_sizes(head_dim=head_dim, value_dim=value_dim)
        shape = (n_blocks, n_kv_heads, block_size)
        self.keys = torch.empty(*shape, head_dim, dtype=dtype, device=device)
        self.values = torch.empty(*shape, value_dim, dtype=dtype, device=device)
        self.block_size = block_size
        self._users = [0] * n_blocks  # how many tables list the block
        self._free = list(reversed(range(n_blocks)))

    @property
    def n_free(self) -> int:
        """Blocks that no table lists."""
        return len(self._free)

    @property
    def n_used(self) -> int:
        """Blocks that at least one table lists; a shared block counts once."""
        return len(self._users) - len(self._free)

    @property
    def block_bytes(self) -> int:
        """Bytes of one block."""
        return (self.keys.nbytes + self.values.nbytes) // len(self._users)

    def take(self) -> int:
        """A free block, now with one user.

        Raises:
            ValueError: if no block is free.
        """
        if not self._free:
            raise ValueError(f"all {len(self._users)} blocks of the pool are in use")
        block = self._free.pop()
        self._users[block] = 1
        return block

    def share(self, block: int) -> None:
        """Count one more user of a block.

        Raises:
            ValueError: if the block is free.
        """
        self._check_used(block)
        self._users[block] += 1

    def shared(self, block: int) -> bool:
        """Whether a block has several users, so that none of them may write to it."""
        return self._users[block] > 1

    def release(self, block: int) -> None:
        """Count one user less; without users the block is free.

        Raises:
            ValueError: if it is free already.
        """
        self._check_used(block)
        self._users[block] -= 1
        if self._users[block] == 0:
            self._free.append(block)

    def _check_used(self, block: int) -> None:
        if self._users[block] == 0:
            raise ValueError(f"block {block} is free")


class PagedCache(KVCache):
    """Keys and values in blocks, found through a table (``prp-paged``, chapter 15).

    Slot j of a row is in the row's block ``j // block_size``, at place ``j % block_size``. A block
    is taken from the pool when its first slot is needed: a row of t tokens holds
    ``ceil(t / block_size)`` blocks, so fewer than ``block_size`` slots are empty. :meth:`fork`
    shares the blocks of a common pool; a row copies a shared block before it writes to it. A text
    that has ended gives its blocks back by :meth:`reset`.

    Args:
        batch_size: as in :class:`lib.kv_cache.KVCache`.
        n_kv_heads: likewise.
        max_len: slots that a row may fill; no memory is reserved for them in a common pool.
        head_dim: likewise.
        value_dim: likewise.
        dtype: likewise.
        device: likewise.
        block_size: slots per block, where no pool is given.
        pool: where the blocks come from; a pool that is just large enough when not given. The
            caches of all layers can use one.

    Attributes:
        pool: as given, or the cache's own.
        table: for each row, its blocks in order.

    Raises:
        ValueError: if a size is below 1, or the pool is for other sizes.
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
        block_size: int = 16,
        pool: BlockPool | None = None,
    ) -> None:
        check_sizes(block_size=block_size)
        self.pool, self._owns_pool, self._block_size = pool, pool is None, block_size
        super().__init__(
            batch_size,
            n_kv_heads,
            max_len,
            head_dim,
            value_dim=value_dim,
            dtype=dtype,
            device=device,
        )

    def _allocate(self) -> None:
        if self.pool is None:
            self.pool = BlockPool(
                self.batch_size * -(-self.max_len // self._block_size),
                self.n_kv_heads,
                self._block_size,
                self.head_dim,
                value_dim=self.value_dim,
                dtype=self.dtype,
                device=self.device,
            )
        keys, values = self.pool.keys, self.pool.values
        has = (keys.shape[1], keys.shape[3], values.shape[3], keys.dtype, keys.device)
        needs = (self.n_kv_heads, self.head_dim, self.value_dim, self.dtype, self.device)
        if has != needs:
            raise ValueError(
                f"the pool has (n_kv_heads, head_dim, value_dim, dtype, device) {has}, but the "
                f"cache needs {needs}"
            )
        self.table: list[list[int]] = [[] for _ in range(self.batch_size)]

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks in the tables, filled or not; a shared block counts in each cache."""
        return sum(len(blocks) for blocks in self.table) * self.pool.block_bytes

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add new keys and values; return all of them, as :meth:`lib.kv_cache.KVCache.update`.

        Raises:
            ValueError: also if the pool has too few free blocks; nothing is changed then.
        """
        return super().update(k, v)

    def _store(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        start, end = self.length, self.length + k.shape[2]
        if start < end:
            self._make_room(start, end)
        table = torch.tensor(self.table, dtype=torch.int64, device=self.device)  # (batch, blocks)
        slots = torch.arange(start, end, device=self.device)
        blocks = table[:, slots // self.pool.block_size]  # (batch, new)
        places = slots % self.pool.block_size  # (new,)
        self.pool.keys[blocks, :, places] = k.transpose(1, 2)  # (batch, new, heads, head_dim)
        self.pool.values[blocks, :, places] = v.transpose(1, 2)
        self.length = end
        return self._gather(self.pool.keys, table), self._gather(self.pool.values, table)

    def _gather(self, memory: Tensor, table: Tensor) -> Tensor:
        """The rows' blocks, one after the other: ``(batch, heads, length, dim)``."""
        blocks = memory[table]  # (batch, blocks, heads, block_size, dim)
        return blocks.transpose(1, 2).flatten(2, 3)[:, :, : self.length]

    def _make_room(self, start: int, end: int) -> None:
        """Give every row blocks of its own for the slots from ``start`` to ``end``."""
        size, pool = self.pool.block_size, self.pool
        first, n_blocks = start // size, -(-end // size)
        missing = sum(n_blocks - len(blocks) for blocks in self.table)
        # Of the blocks that are written to, only the first can be held already, and shared.
        last = [blocks[first] for blocks in self.table if first < len(blocks)]
        copies = sum(pool.shared(block) for block in last)
        if missing + copies > pool.n_free:
            raise ValueError(
                f"{missing + copies} blocks are needed, {copies} of them for copies of shared "
                f"ones, but the pool has {pool.n_free} free"
            )
        for blocks in self.table:
            if first < len(blocks) and pool.shared(blocks[first]):  # copy on write
                own, old = pool.take(), blocks[first]
                pool.keys[own], pool.values[own] = pool.keys[old], pool.values[old]
                pool.release(old)
                blocks[first] = own
            blocks += [pool.take() for _ in range(n_blocks - len(blocks))]

    def _drop(self, length: int) -> None:
        kept = -(-length // self.pool.block_size)
        for blocks in self.table:
            for block in blocks[kept:]:
                self.pool.release(block)
            del blocks[kept:]

    def fork(self) -> "PagedCache":
        """A second cache with the same content, in the same blocks until one of the two writes.

        A cache with a pool of its own is copied with it: that pool has no room for two.
        """
        if self._owns_pool:
            return super().fork()
        forked = copy.copy(self)
        forked.table = [list(blocks) for blocks in self.table]
        for blocks in self.table:
            for block in blocks:
                self.pool.share(block)
        return forked


class Quantized(NamedTuple):
    """Numbers as codes: number ≈ zero + code · scale.

    Attributes:
        codes: uint8, 0 to :math:`2^\\text{bits} - 1`; the shape of the numbers.
        zero: float32, the smallest number of each group; the group's dimension has size 1.
        scale: float32, the step from one code to the next; the shape of ``zero``.
    """

    codes: Tensor
    zero: Tensor
    scale: Tensor


def quantize(x: Tensor, bits: int, *, dim: int) -> Quantized:
    r"""Round numbers to :math:`2^\text{bits}` equally spaced levels of a group (``eq-quantize``).

    .. math::

        \begin{aligned}
        s &= \frac{\max x - \min x}{2^\text{bits} - 1}, \\
        c &= \operatorname{round}\!\left(\frac{x - \min x}{s}\right), \\
        \hat x &= \min x + c\,s
        \end{aligned}

    The levels go from the group's smallest number to its largest, in steps of s; where all
    numbers are equal, s = 0 and c = 0. The error is at most half a step,
    :math:`|x - \hat x| \le s/2`, apart from float32's rounding.

    Args:
        x: numbers, any shape.
        bits: bits per code, 1 to 8.
        dim: the dimension along which numbers form a group, with one zero and one scale.

    Raises:
        ValueError: if ``bits`` is out of range, or ``x`` is not floating point.

    Example:
        >>> x = torch.tensor([0.0, 0.4, 1.0, 3.0])
        >>> quantize(x, 2, dim=0).codes
        tensor([0, 0, 1, 3], dtype=torch.uint8)
    """
    if not 1 <= bits <= 8:
        raise ValueError(f"bits must be 1 to 8, got {bits}")
    if not x.is_floating_point():
        raise ValueError(f"need floating-point numbers to quantize, got {x.dtype}")
    x = x.float()
    low, high = torch.aminmax(x, dim=dim, keepdim=True)
    steps = 2**bits - 1
    scale = (high - low) / steps
    # A group of equal numbers has scale 0: all codes are 0.
    codes = ((x - low) / scale.masked_fill(scale == 0, 1.0)).round().clamp(0, steps)
    return Quantized(codes.to(torch.uint8), low, scale)


def dequantize(quantized: Quantized) -> Tensor:
    """The numbers that codes stand for, float32, of the codes' shape.

    Example:
        >>> dequantize(quantize(torch.tensor([0.0, 0.4, 1.0, 3.0]), 2, dim=0))
        tensor([0., 0., 1., 3.])
    """
    codes, zero, scale = quantized
    return zero + codes * scale


class _ByChannel:
    """Tokens as codes, per channel in groups of tokens, and the last ones exactly.

    The exact ones are in a ring: slot j of the text is at place ``j % size``.
    """

    def __init__(
        self,
        empty: Callable[..., Tensor],
        max_len: int,
        dim: int,
        *,
        bits: int,
        group: int,
        undo: int,
    ) -> None:
        groups = max_len // group
        self._dim, self._bits, self._group = dim, bits, group
        self._codes = empty(groups * group, _packed_dim(dim, bits), torch.uint8)
        self._zero = empty(groups, dim, torch.float32)
        self._scale = empty(groups, dim, torch.float32)
        self._exact = empty(min(group - 1 + undo, max_len), dim)
        self._exact_from = 0  # the first slot whose exact numbers are in the ring

    @property
    def nbytes(self) -> int:
        tensors = (self._codes, self._zero, self._scale, self._exact)
        return sum(tensor.nbytes for tensor in tensors)

    def store(self, new: Tensor, start: int) -> Tensor:
        """Add tokens at the slots from ``start`` on; return all."""
        end, group = start + new.shape[2], self._group
        full, new_full = start // group, end // group  # groups before and after
        if new_full > full:
            waiting = torch.cat([self._recent(full * group, start), new], dim=2)
            grouped = waiting[:, :, : (new_full - full) * group].unflatten(2, (-1, group))
            codes, zero, scale = quantize(grouped, self._bits, dim=3)
            places = slice(full * group, new_full * group)
            self._codes[:, :, places] = _pack(codes.flatten(2, 3), self._bits)
            self._zero[:, :, full:new_full] = zero.squeeze(3)
            self._scale[:, :, full:new_full] = scale.squeeze(3)
        first = max(start, end - self._exact.shape[2])
        self._exact[:, :, self._places(first, end)] = new[:, :, first - start :]
        self._exact_from = max(self._exact_from, end - self._exact.shape[2])
        held = end // group
        return torch.cat([self._groups(0, held), self._recent(held * group, end)], dim=2)

    def drop(self, length: int) -> None:
        """Discard the slots from ``length`` on; what the ring lost of a cut group is rounded."""
        full = length // self._group
        start, end = full * self._group, min(length, self._exact_from)
        if start < end:
            rounded = self._groups(full, full + 1)[:, :, : end - start]
            self._exact[:, :, self._places(start, end)] = rounded
        self._exact_from = min(self._exact_from, start)

    def _recent(self, first: int, end: int) -> Tensor:
        return self._exact[:, :, self._places(first, end)]

    def _places(self, first: int, end: int) -> Tensor:
        slots = torch.arange(first, end, device=self._exact.device)
        return slots % max(1, self._exact.shape[2])

    def _groups(self, first: int, end: int) -> Tensor:
        """The tokens of some groups, ``(batch, heads, (end - first) * group, dim)``."""
        packed = self._codes[:, :, first * self._group : end * self._group]
        codes = _unpack(packed, self._bits, self._dim).unflatten(2, (end - first, self._group))
        zero, scale = self._zero[:, :, first:end], self._scale[:, :, first:end]
        numbers = dequantize(Quantized(codes, zero.unsqueeze(3), scale.unsqueeze(3)))
        return numbers.flatten(2, 3).to(self._exact.dtype)


class _ByToken:
    """Tokens as codes, each with a zero and a scale of its own."""

    def __init__(self, empty: Callable[..., Tensor], max_len: int, dim: int, *, bits: int) -> None:
        self._dim, self._bits = dim, bits
        self._dtype = empty(0, dim).dtype
        self._codes = empty(max_len, _packed_dim(dim, bits), torch.uint8)
        self._zero = empty(max_len, 1, torch.float32)
        self._scale = empty(max_len, 1, torch.float32)

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._zero.nbytes + self._scale.nbytes

    def store(self, new: Tensor, start: int) -> Tensor:
        """Add tokens at the slots from ``start`` on; return all."""
        end = start + new.shape[2]
        codes, zero, scale = quantize(new, self._bits, dim=3)
        self._codes[:, :, start:end] = _pack(codes, self._bits)
        self._zero[:, :, start:end] = zero
        self._scale[:, :, start:end] = scale
        codes = _unpack(self._codes[:, :, :end], self._bits, self._dim)
        numbers = Quantized(codes, self._zero[:, :, :end], self._scale[:, :, :end])
        return dequantize(numbers).to(self._dtype)

    def drop(self, length: int) -> None:
        """Discard the slots from ``length`` on: later ones will be overwritten."""


def _packed_dim(dim: int, bits: int) -> int:
    return -(-dim * bits // 8)


def _pack(codes: Tensor, bits: int) -> Tensor:
    """Two codes of 4 bits in each byte: the channels 0 and 1, 2 and 3, and so on."""
    if bits == 8:
        return codes
    codes = F.pad(codes, (0, codes.shape[-1] % 2))
    return codes[..., 0::2] | codes[..., 1::2] << 4


def _unpack(packed: Tensor, bits: int, dim: int) -> Tensor:
    if bits == 8:
        return packed
    return torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2)[..., :dim]


class QuantizedCache(KVCache):
    r"""Keys and values as codes of 8 or 4 bits (``prp-quantized``, chapter 15).

    Some channels of the keys are large in every token. So keys are quantized **per channel**: a
    channel's numbers in ``group`` tokens, one after the other, have one zero and one scale. Values
    are quantized **per token**. Tokens whose group is not yet full keep their exact keys.

    While nothing is taken back, what is held depends on the slots alone and not on the pieces that
    a text is read in. What a query sees does: in a long piece, groups that the piece fills are
    rounded for its own queries. So the tokens of :func:`lib.speculation.speculate` can differ from
    those of the one-token loop.

    :meth:`truncate` opens the group that it cuts. If more than ``undo`` tokens are taken back, the
    group's exact keys may be gone: the rounded ones take their place, and are rounded once more
    when the group is full again, so that their errors add up. This is so for refused drafts, for
    a prefix that is reused (:func:`lib.serving.continue_from`), and for a pass that fails after it
    has filled a group.

    In half precision the numbers that ``update`` returns are rounded to ``dtype`` as well, which
    with 8 bits can be more than half a step.

    Args:
        batch_size: as in :class:`lib.kv_cache.KVCache`.
        n_kv_heads: likewise.
        max_len: likewise.
        head_dim: likewise.
        value_dim: likewise.
        dtype: likewise; of the keys that are not quantized yet, and of what ``update`` returns.
        device: likewise.
        bits: 8 or 4; codes of 4 bits are stored in pairs.
        group: tokens in a group of keys.
        undo: last tokens that :meth:`truncate` takes back exactly; for drafts of n tokens, n + 1.
            So many more exact keys are kept.
        values_per_channel: quantize values as keys are, for numbers that are in the values' place
            and are no values: latent attention has a rotated key there.

    Raises:
        ValueError: if a size is below 1, ``bits`` is neither 8 nor 4, or ``undo`` is negative.
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
        bits: int = 8,
        group: int = 32,
        undo: int = 0,
        values_per_channel: bool = False,
    ) -> None:
        if bits not in (8, 4):
            raise ValueError(f"bits must be 8 or 4, got {bits}")
        check_sizes(group=group)
        if undo < 0:
            raise ValueError(f"undo cannot be negative, got {undo}")
        self.bits, self.group, self.undo = bits, group, undo
        self.values_per_channel = values_per_channel
        super().__init__(
            batch_size,
            n_kv_heads,
            max_len,
            head_dim,
            value_dim=value_dim,
            dtype=dtype,
            device=device,
        )

    def _allocate(self) -> None:
        by_channel = partial(_ByChannel, bits=self.bits, group=self.group, undo=self.undo)
        by_token = partial(_ByToken, bits=self.bits)
        of_values = by_channel if self.values_per_channel else by_token
        self._stored_keys = by_channel(self._empty, self.max_len, self.head_dim)
        self._stored_values = of_values(self._empty, self.max_len, self.value_dim)

    @property
    def nbytes(self) -> int:
        """Bytes allocated for codes, zeros, scales and exact keys, in use or not."""
        return self._stored_keys.nbytes + self._stored_values.nbytes

    def _store(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys = self._stored_keys.store(k, self.length)
        values = self._stored_values.store(v, self.length)
        self.length += k.shape[2]
        return keys, values

    def _drop(self, length: int) -> None:
        self._stored_keys.drop(length)
        self._stored_values.drop(length)


class WindowCache(KVCache):
    """The last tokens and, if wanted, the first ones: a ring of slots (``prp-ring``, chapter 15).

    A query sees the keys at most ``window`` slots back, as in
    :func:`lib.masks.sliding_window_mask`, and the first ``sinks`` slots of the text. Memory holds
    ``sinks + window`` tokens, however long the text, and the last piece that was read; long
    prompts are therefore read in chunks. Slot j of the text is at place
    ``sinks + (j - sinks) % window``, where it overwrites the slot that has just left the window.

    The last piece enters the ring with the next one. Until then :meth:`truncate` can take it
    back, as a refused draft needs.

    **Positions stay what they were**: kept keys keep the position at which they were stored, and
    the distance to the sinks grows with the text. (Xiao et al. count positions inside the cache.)
    Slots are counted with padding, so a padded row loses sinks to it: give each text a state.

    Args:
        batch_size: as in :class:`lib.kv_cache.KVCache`.
        n_kv_heads: likewise.
        max_len: the longest text; memory depends on it only where the window is longer.
        head_dim: likewise.
        value_dim: likewise.
        dtype: likewise.
        device: likewise.
        window: the largest distance that a query sees, at least 1.
        sinks: first tokens that are never dropped.

    Raises:
        ValueError: if a size is below 1, or ``sinks`` is negative.
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
        window: int,
        sinks: int = 0,
    ) -> None:
        check_sizes(window=window)
        if sinks < 0:
            raise ValueError(f"sinks cannot be negative, got {sinks}")
        self.window, self.sinks = window, sinks
        super().__init__(
            batch_size,
            n_kv_heads,
            max_len,
            head_dim,
            value_dim=value_dim,
            dtype=dtype,
            device=device,
        )

    def _allocate(self) -> None:
        places = min(self.sinks + self.window, self.max_len)
        self._keys, self._values = (
            self._empty(places, dim) for dim in (self.head_dim, self.value_dim)
        )
        self._piece = (self._keys[:, :, :0], self._values[:, :, :0])
        self._entered = 0  # the slots before this one have entered the ring

    @property
    def nbytes(self) -> int:
        """Bytes of the ring, the sinks and the last piece."""
        return sum(x.nbytes for x in (self._keys, self._values, *self._piece))

    def k_len(self, new: int) -> int:
        """How many keys ``update`` returns when it is given ``new`` ones."""
        return min(self.length, self.sinks + self.window) + new

    def slots(self, length: int) -> Tensor:
        """The slots of the keys that ``update`` returns when it brings the cache to ``length``."""
        entered = self.length if length > self.length else self._entered
        return torch.cat([self._ring(entered), torch.arange(entered, length, device=self.device)])

    def _ring(self, entered: int) -> Tensor:
        """Which slot is at each place in use, when ``entered`` slots have entered."""
        places = torch.arange(min(entered, self.sinks + self.window), device=self.device)
        latest = entered - 1 - (entered - 1 - places) % self.window  # same place, last time
        return torch.where(places < self.sinks, places, latest)

    def visible(self, slots: Tensor, q_slots: Tensor) -> Tensor:
        """Keys in the window, and sinks: boolean ``(q_len, k_len)``."""
        return (q_slots[:, None] - slots <= self.window) | (slots < self.sinks)

    def _store(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self._enter()
        held = min(self._entered, self.sinks + self.window)
        self._piece = (k.clone(), v.clone())
        self.length = self._entered + k.shape[2]
        keys = torch.cat([self._keys[:, :, :held], k], dim=2)
        values = torch.cat([self._values[:, :, :held], v], dim=2)
        return keys, values

    def _enter(self) -> None:
        """Write the last piece into the ring; of a long one, what is still in reach."""
        slots = torch.arange(self._entered, self.length, device=self.device)
        kept = (slots < self.sinks) | (slots >= self.length - self.window)
        slots = slots[kept]
        places = torch.where(
            slots < self.sinks, slots, self.sinks + (slots - self.sinks) % self.window
        )
        self._keys[:, :, places] = self._piece[0][:, :, kept]
        self._values[:, :, places] = self._piece[1][:, :, kept]
        self._entered = self.length

    def truncate(self, length: int) -> None:
        """Discard everything from slot ``length`` on.

        Raises:
            ValueError: if ``length`` is negative or more than the cache holds, or slots before it
                have been overwritten already.
        """
        self.check_truncate(length)
        super().truncate(length)

    def check_truncate(self, length: int) -> None:
        """Refuse a length for which slots have been overwritten, with a ``ValueError``."""
        overwritten = self._entered > self.sinks + self.window
        if 0 < length < self._entered and overwritten:
            raise ValueError(
                f"cannot truncate to {length}: slots before it are overwritten, only the last "
                f"piece, from {self._entered} on, can be taken back"
            )

    def _drop(self, length: int) -> None:
        self._entered = min(self._entered, length)
        self._piece = tuple(x[:, :, : length - self._entered] for x in self._piece)
