r"""Exact attention in tiles: the online softmax, and the bytes that tiles save (chapter 14).

An output of attention is a ratio of two sums over the keys. A :class:`SoftmaxState` holds the two
sums over *some* of the keys, so two states of different keys can be merged into one, in any order:

=========================  ====================================================================
function                   what it does
=========================  ====================================================================
:func:`softmax_state`      the state of one tile of keys
:func:`merge_states`       the state of two sets of keys, from the state of each
:func:`finish_state`       the ratio of the two sums: the output
:func:`tiled_attention`    the three together, tile by tile: FlashAttention's forward, readable
:func:`attention_bytes`    bytes that pass between slow and fast memory, with and without tiles
=========================  ====================================================================

This module is written to be read. torch's fused kernels do the same inside one GPU program, with
the tiles in fast memory; in Python, tiles cost time and save only memory.

Sources: Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018,
arXiv:1805.02867, section 3; Rabe and Staats, *Self-attention Does Not Need O(n²) Memory*, 2021,
arXiv:2112.05682, section 2; Dao et al., *FlashAttention*, 2022, arXiv:2205.14135, section 3.1 and
algorithm 1; Dao, *FlashAttention-2*, 2023, arXiv:2307.08691, section 3.1 (queries in the outer
loop).
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from lib.attention import check_added, check_qkv
from lib.shapes import check_sizes

__all__ = [
    "SoftmaxState",
    "attention_bytes",
    "finish_state",
    "merge_states",
    "softmax_state",
    "tiled_attention",
]


class SoftmaxState(NamedTuple):
    r"""Attention over some of the keys, not yet divided (``eq-softmax-state``, chapter 14).

    Attributes:
        largest: the largest score, ``(..., q_len, 1)``; ``-inf`` if no key may be seen.
        total: :math:`\sum_n e^{s_n - \text{largest}}`, ``(..., q_len, 1)``.
        weighted: :math:`\sum_n e^{s_n - \text{largest}} v_n`, ``(..., q_len, value_dim)``.
    """

    largest: Tensor
    total: Tensor
    weighted: Tensor


def softmax_state(scores: Tensor, value: Tensor) -> SoftmaxState:
    """The state of one tile of keys.

    Args:
        scores: ``(..., q_len, k_len)``, scaled, ``-inf`` where a key is hidden.
        value: ``(..., k_len, value_dim)``.

    Example:
        Two keys with the same score: the total is 2, and the weighted sum 10 + 20.

        >>> state = softmax_state(torch.tensor([[5.0, 5.0]]), torch.tensor([[10.0], [20.0]]))
        >>> state.largest.item(), state.total.item(), state.weighted.item()
        (5.0, 2.0, 30.0)
    """
    largest = scores.amax(dim=-1, keepdim=True)  # (..., q_len, 1)
    terms = (scores - _finite(largest)).exp()  # (..., q_len, k_len), at most 1
    return SoftmaxState(largest, terms.sum(dim=-1, keepdim=True), terms @ value)


def merge_states(first: SoftmaxState, second: SoftmaxState) -> SoftmaxState:
    """The state of two sets of keys that have no key in common (``prp-merge``, chapter 14).

    Both are rescaled to the larger of the two largest scores, and added. The order of several
    merges makes no difference, except in rounding.

    Args:
        first: the state of some keys.
        second: the state of other keys, for the same queries.
    """
    largest = torch.maximum(first.largest, second.largest)  # (..., q_len, 1)
    shrink_first = (first.largest - _finite(largest)).exp()  # 0 for a state without a key
    shrink_second = (second.largest - _finite(largest)).exp()
    return SoftmaxState(
        largest,
        first.total * shrink_first + second.total * shrink_second,
        first.weighted * shrink_first + second.weighted * shrink_second,
    )


def finish_state(state: SoftmaxState) -> Tensor:
    """Divide: ``(..., q_len, value_dim)``, 0 for a query that may see no key."""
    return state.weighted / state.total.masked_fill(state.total == 0, 1.0)


def tiled_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    scale: float | None = None,
    q_tile: int = 64,
    k_tile: int = 64,
) -> Tensor:
    """Compute attention tile by tile, with the scores of one tile at a time (``thm-tiled``).

    The result is that of :func:`lib.attention.scaled_dot_product_attention`, whatever the tiles. A
    tile in which every key is hidden is skipped: under a causal mask about half of them are.

    Args:
        query: ``(..., q_len, head_dim)``.
        key: ``(..., k_len, head_dim)``.
        value: ``(..., k_len, value_dim)``.
        mask: boolean, broadcastable to ``(..., q_len, k_len)``; ``True`` = may attend.
        bias: floating point, broadcastable to the same; added to the scaled scores.
        scale: what the scores are multiplied by; ``1 / sqrt(head_dim)`` when not given.
        q_tile: queries in a tile; the last tile may be smaller.
        k_tile: keys in a tile.

    Returns:
        ``(..., q_len, value_dim)``, computed in float32 or wider.

    Raises:
        ValueError: if a tile size is below 1, or as
            :func:`lib.attention.scaled_dot_product_attention`.
    """
    check_sizes(q_tile=q_tile, k_tile=k_tile)
    leading = check_qkv(query, key, value)
    q_len, k_len = query.shape[-2], key.shape[-2]
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    shape = (*leading, q_len, k_len)
    check_added("mask", mask, query, shape)
    check_added("bias", bias, query, shape)
    mask = None if mask is None else mask.expand(shape)  # views: nothing is copied
    bias = None if bias is None else bias.expand(shape)

    wide = torch.promote_types(query.dtype, torch.float32)
    output = query.new_empty(*leading, q_len, value.shape[-1])
    for top in range(0, q_len, q_tile):
        rows = slice(top, top + q_tile)
        q = query[..., rows, :].to(wide) * scale  # loaded once
        state = _nothing_seen(leading, q.shape[-2], value, wide)
        for left in range(0, k_len, k_tile):
            columns = slice(left, left + k_tile)
            seen = None if mask is None else mask[..., rows, columns]
            if seen is not None and not seen.any():
                continue
            scores = q @ key[..., columns, :].to(wide).transpose(-2, -1)  # (..., q_tile, k_tile)
            if bias is not None:
                scores = scores + bias[..., rows, columns].to(wide)
            if seen is not None:
                scores = scores.masked_fill(~seen, -torch.inf)
            tile = softmax_state(scores, value[..., columns, :].to(wide))
            state = merge_states(state, tile)
        output[..., rows, :] = finish_state(state).to(query.dtype)  # stored once
    return output


def attention_bytes(
    q_len: int,
    k_len: int,
    head_dim: int,
    value_dim: int | None = None,
    *,
    q_tile: int | None = None,
    dtype: torch.dtype = torch.float16,
) -> int:
    r"""Bytes that one head moves between slow and fast memory (``eq-attention-bytes``, chapter 14).

    Without tiles there are three programs: one reads Q and K and writes the scores, one reads the
    scores and writes the weights, one reads the weights and V and writes O. In numbers,

    .. math:: (L_q + L_k)(d_k + d_v) + 4 L_q L_k .

    With tiles there is one program. It reads each tile of queries and writes its outputs once, and
    reads all keys and values once per tile of queries:

    .. math:: L_q (d_k + d_v) + \lceil L_q / \text{q\_tile} \rceil \, L_k (d_k + d_v) .

    Args:
        q_len: number of queries.
        k_len: number of keys.
        head_dim: width of a query and a key.
        value_dim: width of a value; ``head_dim`` when not given.
        q_tile: queries in a tile; without it, the three programs. The keys' tile does not matter.
        dtype: dtype of all numbers that are moved.

    Returns:
        The number of bytes. A mask and skipped tiles are not counted.

    Raises:
        ValueError: if a size is below 1.

    Example:
        4096 tokens, heads of 128, in MB: the three programs, and tiles of 128 queries.

        >>> n, d = 4096, 128
        >>> attention_bytes(n, n, d) / 1e6, attention_bytes(n, n, d, q_tile=128) / 1e6
        (138.412032, 69.206016)
    """
    value_dim = head_dim if value_dim is None else value_dim
    check_sizes(q_len=q_len, k_len=k_len, head_dim=head_dim, value_dim=value_dim)
    width = head_dim + value_dim
    if q_tile is None:
        numbers = (q_len + k_len) * width + 4 * q_len * k_len
    else:
        check_sizes(q_tile=q_tile)
        numbers = q_len * width + math.ceil(q_len / q_tile) * k_len * width
    return numbers * dtype.itemsize


def _nothing_seen(leading, q_len: int, value: Tensor, dtype: torch.dtype) -> SoftmaxState:
    """The state of no keys: merging it with another one changes nothing."""
    number = {"dtype": dtype, "device": value.device}
    return SoftmaxState(
        torch.full((*leading, q_len, 1), -torch.inf, **number),
        torch.zeros(*leading, q_len, 1, **number),
        torch.zeros(*leading, q_len, value.shape[-1], **number),
    )


def _finite(largest: Tensor) -> Tensor:
    """0 in place of the ``-inf`` of no keys, because ``-inf - (-inf)`` is not a number."""
    return largest.masked_fill(largest.isneginf(), 0.0)
