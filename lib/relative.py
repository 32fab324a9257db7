r"""Relative position: from the four terms of a score to Shaw, Transformer-XL, T5, DeBERTa, TUPE.

With inputs x + p (content plus position), a score is a sum of four terms (``eq-four-terms``,
chapter 04). Each scheme here keeps some, drops others, and lets the rest depend on how far apart
query and key are. That is a choice, not algebra.

Conventions:

- ``relative_position`` is **key minus query**, n − m, as in T5's code and Shaw's formulas:
  negative for a key that stands before the query. (Transformer-XL and DeBERTa write m − n.)
- In formulas vectors are rows, q = x W_q, as in the book. In code a projection is what
  :class:`torch.nn.Linear` stores, the transpose ``(out, in)``: ``q = x @ w_q.T``.
- ``..._scores`` returns the full score, ready for the softmax; ``..._bias`` returns its
  position-dependent part, scaled, ready to be added to the scaled q · k.
- Queries may have more heads than keys (grouped queries) in ``transformer_xl_bias``: query head
  h then belongs to key head ``h // (heads / kv_heads)``.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from lib.rope import apply_rope, rope_tables
from lib.sinusoidal import angular_frequencies, sinusoidal_encoding

__all__ = [
    "ScoreTerms",
    "TransformerXLTables",
    "deberta_scores",
    "decompose_scores",
    "relative_position_bucket",
    "relative_positions",
    "shaw_bias",
    "shaw_scores",
    "shaw_values",
    "transformer_xl_bias",
    "transformer_xl_scores",
    "transformer_xl_tables",
    "tupe_scores",
]


class ScoreTerms(NamedTuple):
    """The four terms of a score, each ``(..., q_len, k_len)``; the query's part is named first."""

    content_content: Tensor
    content_position: Tensor
    position_content: Tensor
    position_position: Tensor


class TransformerXLTables(NamedTuple):
    """What :func:`transformer_xl_bias` needs of the positions."""

    query_cos: Tensor  # (..., q_len, encoding_dim / 2)
    query_sin: Tensor  # (..., q_len, encoding_dim / 2)
    key_encoding: Tensor  # (..., k_len, encoding_dim)


def relative_positions(q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """Give n − m for every query and key.

    Args:
        q_positions: ``(..., q_len)``, integers m.
        k_positions: ``(..., k_len)``, integers n.

    Returns:
        int64 ``(..., q_len, k_len)``.

    Raises:
        ValueError: if positions are not integers.

    Example:
        >>> relative_positions(torch.tensor([5, 6]), torch.tensor([4, 5, 6]))
        tensor([[-1,  0,  1],
                [-2, -1,  0]])
    """
    _check_integers("q_positions", q_positions)
    _check_integers("k_positions", k_positions)
    return k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)


def decompose_scores(x: Tensor, p: Tensor, w_q: Tensor, w_k: Tensor) -> ScoreTerms:
    r"""Split the unscaled scores of x + p into four terms (``eq-four-terms``, chapter 04).

    .. math::

        \begin{aligned}
        &(x_m + p_m) W_q W_k^\top (x_n + p_n)^\top \\
        &\quad = x_m W_q W_k^\top x_n^\top + x_m W_q W_k^\top p_n^\top \\
        &\qquad + p_m W_q W_k^\top x_n^\top + p_m W_q W_k^\top p_n^\top
        \end{aligned}

    Args:
        x: content, ``(..., length, d_model)``.
        p: position vectors, broadcastable to the shape of ``x``.
        w_q: ``(head_dim, d_model)``, the transpose of :math:`W_q`.
        w_k: ``(head_dim, d_model)``, the transpose of :math:`W_k`.

    Returns:
        The four terms, each ``(..., length, length)``; their sum is the score before it is scaled.

    Raises:
        ValueError: if the widths do not fit.
    """
    if not x.shape[-1] == p.shape[-1] == w_q.shape[-1] == w_k.shape[-1]:
        raise ValueError(
            f"x {tuple(x.shape)}, p {tuple(p.shape)}, w_q {tuple(w_q.shape)} and w_k "
            f"{tuple(w_k.shape)} must share their last dimension, d_model"
        )
    if w_q.shape != w_k.shape:
        raise ValueError(
            f"w_q {tuple(w_q.shape)} and w_k {tuple(w_k.shape)} must be (head_dim, d_model) both: "
            "a query and a key need the same number of components"
        )
    x, p = torch.broadcast_tensors(x, p)
    x_q, x_k = x @ w_q.T, x @ w_k.T  # (..., length, head_dim)
    p_q, p_k = p @ w_q.T, p @ w_k.T
    x_k, p_k = x_k.transpose(-2, -1), p_k.transpose(-2, -1)
    return ScoreTerms(x_q @ x_k, x_q @ p_k, p_q @ x_k, p_q @ p_k)


def shaw_bias(q: Tensor, key_table: Tensor, relative_position: Tensor) -> Tensor:
    r"""Give Shaw's term on the scores (the part of ``eq-shaw`` that knows positions).

    .. math:: \frac{q_m \cdot a^K_{\operatorname{clip}(n - m)}}{\sqrt{d_k}}

    Args:
        q: ``(..., q_len, head_dim)``.
        key_table: ``(2 * max_distance + 1, head_dim)``; row ``clip(n − m) + max_distance`` is
            :math:`a^K_{\operatorname{clip}(n-m)}`, so the middle row is for n = m.
        relative_position: n − m, ``(..., q_len, k_len)``, broadcastable over the leading
            dimensions of ``q``.

    Returns:
        ``(..., q_len, k_len)``.

    Raises:
        ValueError: if the table has an even number of rows or another width than ``q``.
    """
    rows = _clipped_rows(key_table, relative_position, q.shape[-1])
    return _pick(q @ key_table.T, rows) / math.sqrt(q.shape[-1])


def shaw_scores(q: Tensor, k: Tensor, key_table: Tensor, relative_position: Tensor) -> Tensor:
    r"""Give Shaw's scores (``eq-shaw``, chapter 04).

    .. math::

        s_{mn} = \frac{q_m \cdot \bigl(k_n + a^K_{\operatorname{clip}(n - m)}\bigr)}{\sqrt{d_k}}

    with differences clipped to the range from −c to c, c = ``max_distance``. Shaw et al., 2018,
    arXiv:1803.02155, sections 3.2 and 3.3.

    Args:
        q: ``(..., q_len, head_dim)``.
        k: ``(..., k_len, head_dim)``.
        key_table: as in :func:`shaw_bias`.
        relative_position: as in :func:`shaw_bias`.

    Returns:
        ``(..., q_len, k_len)``.

    Raises:
        ValueError: if ``q`` and ``k`` differ in head_dim, or as :func:`shaw_bias`.
    """
    _check_head_dim(q=q, k=k)
    content = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return content + shaw_bias(q, key_table, relative_position)


def shaw_values(
    weights: Tensor, value: Tensor, value_table: Tensor, relative_position: Tensor
) -> Tensor:
    r"""Average values that carry relative position (``eq-shaw-values``, chapter 04).

    .. math:: o_m = \sum_n w_{mn} \bigl(v_n + a^V_{\operatorname{clip}(n - m)}\bigr)

    This is the fourth place where position can enter. Weights of keys at the same clipped offset
    are summed first, so that no ``(q_len, k_len, value_dim)`` tensor is made.

    Args:
        weights: after the softmax, ``(..., q_len, k_len)``.
        value: ``(..., k_len, value_dim)``.
        value_table: ``(2 * max_distance + 1, value_dim)``, rows as in :func:`shaw_bias`.
        relative_position: as in :func:`shaw_bias`.

    Returns:
        ``(..., q_len, value_dim)``.

    Raises:
        ValueError: if the table has an even number of rows or another width than ``value``.
    """
    rows = _clipped_rows(value_table, relative_position, value.shape[-1])
    per_offset = weights.new_zeros(*weights.shape[:-1], value_table.shape[0])
    per_offset = per_offset.scatter_add(-1, rows.expand(weights.shape), weights)
    return weights @ value + per_offset @ value_table


def transformer_xl_tables(
    q_positions: Tensor,
    k_positions: Tensor,
    encoding_dim: int,
    *,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
) -> TransformerXLTables:
    """Work out the sines and cosines for :func:`transformer_xl_bias`, once for all layers.

    Args:
        q_positions: ``(..., q_len)``, integers m.
        k_positions: ``(..., k_len)``, integers n.
        encoding_dim: width of the sinusoidal encoding, even.
        base: as in :func:`lib.sinusoidal.sinusoidal_encoding`.
        dtype: dtype of the tables.

    Returns:
        Tables whose size grows with q_len + k_len, not with their product.

    Raises:
        ValueError: if ``encoding_dim`` is odd or below 2.
    """
    frequencies = angular_frequencies(encoding_dim, base=base, device=q_positions.device)
    cos, sin = rope_tables(q_positions, frequencies, dtype=dtype)
    encoding = sinusoidal_encoding(-k_positions, encoding_dim, base=base, dtype=dtype)
    return TransformerXLTables(cos, sin, encoding)


def transformer_xl_bias(
    q: Tensor, k: Tensor, w_r: Tensor, u: Tensor, v: Tensor, tables: TransformerXLTables
) -> Tensor:
    r"""Give Transformer-XL's terms (b), (c) and (d), scaled (``eq-transformer-xl``).

    The encoding r of the difference is never written out for every pair m, n. By ``eq-shift`` of
    chapter 03, in rows, :math:`r_{m-n} = \operatorname{PE}(-n) M(m)^\top`, and :math:`M(m)^\top`
    is RoPE's rotation :math:`R_m`, so a query is turned once and then meets every key:

    .. math:: (q_m + v) \cdot (r_{m-n} W_r)
              = \bigl((q_m + v) W_r^\top R_m^\top\bigr) \cdot \operatorname{PE}(-n).

    Args:
        q: ``(batch, heads, q_len, head_dim)``.
        k: ``(batch, kv_heads, k_len, head_dim)``.
        w_r: ``(heads, head_dim, encoding_dim)``, the transpose of :math:`W_r`, one per head (the
            paper's :math:`W_{k,R}`).
        u: ``(heads, head_dim)``.
        v: ``(heads, head_dim)``.
        tables: from :func:`transformer_xl_tables`, broadcastable over batch and heads.

    Returns:
        ``(batch, heads, q_len, k_len)``.

    Raises:
        ValueError: if ``heads`` is not a multiple of ``kv_heads``, or ``w_r``, ``u`` and ``v`` are
            for other heads, or ``q`` and ``k`` differ in head_dim.
    """
    _check_head_dim(q=q, k=k)
    heads, kv_heads, head_dim = q.shape[-3], k.shape[-3], q.shape[-1]
    if heads % kv_heads:
        raise ValueError(f"heads must be a multiple of kv_heads, got {heads} and {kv_heads}")
    if not w_r.shape[:-1] == u.shape == v.shape == (heads, head_dim):
        raise ValueError(
            f"w_r {tuple(w_r.shape)}, u {tuple(u.shape)} and v {tuple(v.shape)} must begin with "
            f"the queries' (heads, head_dim) = {(heads, head_dim)}"
        )
    asked = (q + v.unsqueeze(-2)) @ w_r  # (batch, heads, q_len, encoding_dim)
    asked = apply_rope(asked, tables.query_cos, tables.query_sin, layout="interleaved")
    position = asked @ tables.key_encoding.transpose(-2, -1).to(asked.dtype)
    grouped_u = u.unflatten(0, (kv_heads, -1))  # (kv_heads, group, head_dim)
    global_content = (grouped_u @ k.transpose(-2, -1)).flatten(-3, -2)  # (batch, heads, k_len)
    return (position + global_content.unsqueeze(-2)) / math.sqrt(head_dim)


def transformer_xl_scores(
    q: Tensor,
    k: Tensor,
    w_r: Tensor,
    u: Tensor,
    v: Tensor,
    q_positions: Tensor,
    k_positions: Tensor,
    *,
    base: float = 10000.0,
) -> Tensor:
    r"""Give Transformer-XL's scores (``eq-transformer-xl``, chapter 04).

    .. math::

        \begin{aligned}
        s_{mn} &= \frac{1}{\sqrt{d_k}} \Bigl(\underbrace{q_m \cdot k_n}_{(a)}
        + \underbrace{q_m \cdot (r_{m-n} W_r)}_{(b)} \\
        &\qquad + \underbrace{u \cdot k_n}_{(c)}
        + \underbrace{v \cdot (r_{m-n} W_r)}_{(d)}\Bigr)
        \end{aligned}

    with :math:`r_{m-n}` the sinusoidal encoding of m − n. Dai et al., 2019, arXiv:1901.02860,
    section 3.3. The encoding holds sin and cos interleaved; the authors' code holds all sines
    first, a permutation of the columns of ``w_r``.

    Args:
        q: ``(batch, heads, q_len, head_dim)``.
        k: ``(batch, heads, k_len, head_dim)``.
        w_r: ``(heads, head_dim, encoding_dim)``.
        u: ``(heads, head_dim)``.
        v: ``(heads, head_dim)``.
        q_positions: ``(batch or 1, q_len)``, integers m.
        k_positions: ``(batch or 1, k_len)``, integers n.
        base: as in :func:`lib.sinusoidal.sinusoidal_encoding`.

    Returns:
        ``(batch, heads, q_len, k_len)``.

    Raises:
        ValueError: if ``encoding_dim`` is odd, or as :func:`transformer_xl_bias`.
    """
    _check_head_dim(q=q, k=k)
    wide = torch.promote_types(q.dtype, torch.float32)
    tables = transformer_xl_tables(
        q_positions.unsqueeze(-2), k_positions.unsqueeze(-2), w_r.shape[-1], base=base, dtype=wide
    )
    content = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return content + transformer_xl_bias(q, k, w_r, u, v, tables)


def relative_position_bucket(
    relative_position: Tensor,
    *,
    bidirectional: bool,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> Tensor:
    r"""Sort relative positions into T5's buckets (``eq-t5-bucket``, chapter 04).

    With N buckets for a direction, each distance j below E = N // 2 has its own. Beyond, with
    D = ``max_distance``, distance j falls into bucket

    .. math:: E + \left\lfloor \frac{\log(j / E)}{\log(D / E)} (N - E) \right\rfloor

    but at most N − 1: the last bucket takes everything farther. ``bidirectional`` gives each
    direction half of the buckets, keys after the query the upper half; otherwise keys after the
    query share bucket 0 with the query's own position. The boundaries are found in whole numbers,
    so that rounding of logarithms cannot move a distance to the next bucket.

    Raffel et al., 2020, arXiv:1910.10683, section 2.1, and its code.

    Args:
        relative_position: n − m, any shape, integers.
        bidirectional: whether a query may look ahead.
        num_buckets: number of buckets, of both directions together.
        max_distance: from here on everything shares one bucket.

    Returns:
        int64, same shape, from 0 to ``num_buckets - 1``.

    Raises:
        ValueError: if there are too few buckets, an odd number for two directions,
            ``max_distance`` is not beyond the exact buckets, or positions are not integers.

    Example:
        >>> offsets = torch.tensor([-200, -9, -1, 0, 1, 9])
        >>> relative_position_bucket(offsets, bidirectional=True)
        tensor([15,  8,  1,  0, 17, 24])
    """
    _check_integers("relative_position", relative_position)
    directions = 2 if bidirectional else 1
    per_direction = num_buckets // directions
    if num_buckets % directions or per_direction < 2:
        raise ValueError(
            f"num_buckets={num_buckets} cannot serve {directions} direction(s): each needs the "
            "same number of buckets, at least 2"
        )
    if max_distance <= per_direction // 2:
        raise ValueError(
            f"max_distance={max_distance} must be above {per_direction // 2}, up to where each "
            "distance has its own bucket"
        )
    starts = torch.tensor(_bucket_starts(per_direction, max_distance))
    starts = starts.to(relative_position.device, non_blocking=True)  # a GPU is not waited for
    if bidirectional:
        distance = relative_position.abs()
        return torch.bucketize(distance, starts, right=True) + per_direction * (
            relative_position > 0
        )
    return torch.bucketize((-relative_position).clamp(min=0), starts, right=True)


def deberta_scores(
    q: Tensor, k: Tensor, position_q: Tensor, position_k: Tensor, relative_position: Tensor
) -> Tensor:
    r"""Give DeBERTa's disentangled scores (``eq-deberta``, chapter 04).

    .. math::

        \begin{aligned}
        s_{mn} &= \frac{1}{\sqrt{3 d_k}} \Bigl(q_m \cdot k_n + q_m \cdot k^r_{\delta(m,n)} \\
        &\qquad + k_n \cdot q^r_{\delta(n,m)}\Bigr), \\
        \delta(m, n) &= \operatorname{clip}(m - n + c,\; 0,\; 2c - 1)
        \end{aligned}

    Content–content, content–position and position–content stay; position–position is dropped.
    Note the order of m and n in the last term; the implementation in the library transformers
    uses :math:`\delta(m, n)` there too, which up to clipping is :math:`q^r` with its rows reversed.
    He et al., 2021, arXiv:2006.03654, section 3.1.

    Args:
        q: content queries, ``(..., q_len, head_dim)``.
        k: content keys, ``(..., k_len, head_dim)``.
        position_q: projected relative embeddings :math:`q^r`,
            ``(..., 2 * max_distance, head_dim)``.
        position_k: projected relative embeddings :math:`k^r`, same shape.
        relative_position: n − m, ``(..., q_len, k_len)``.

    Returns:
        ``(..., q_len, k_len)``.

    Raises:
        ValueError: if the four differ in head_dim, or the two tables differ in shape or have an
            odd number of rows.
    """
    _check_head_dim(q=q, k=k, position_q=position_q, position_k=position_k)
    rows = position_q.shape[-2]
    if position_q.shape != position_k.shape or rows % 2:
        raise ValueError(
            "position_q and position_k need the same, even number of rows, got "
            f"{tuple(position_q.shape)} and {tuple(position_k.shape)}"
        )
    delta_mn = (rows // 2 - relative_position).clamp(0, rows - 1)
    delta_nm = (rows // 2 + relative_position).clamp(0, rows - 1)
    content_position = _pick(q @ position_k.transpose(-2, -1), delta_mn)
    by_key = _pick(k @ position_q.transpose(-2, -1), delta_nm.transpose(-2, -1))  # (..., n, m)
    content = q @ k.transpose(-2, -1)
    return (content + content_position + by_key.transpose(-2, -1)) / math.sqrt(3 * q.shape[-1])


def tupe_scores(
    q: Tensor, k: Tensor, position_q: Tensor, position_k: Tensor, *, bias: Tensor | None = None
) -> Tensor:
    r"""Give TUPE's untied scores (``eq-tupe``, chapter 04).

    .. math::

        s_{mn} = \frac{q_m \cdot k_n + (p_m U_q) \cdot (p_n U_k)}{\sqrt{2 d_k}} + b_{n-m}

    Content–content and position–position stay, with separate projections; both cross terms are
    dropped. Ke et al., 2021, arXiv:2006.15595, section 3.1. (Section 3.2, which treats the first
    token apart, is not done here.)

    Args:
        q: content queries :math:`x W_q`, ``(..., q_len, head_dim)``.
        k: content keys :math:`x W_k`, ``(..., k_len, head_dim)``.
        position_q: position queries :math:`p U_q`, ``(..., q_len, head_dim)``.
        position_k: position keys :math:`p U_k`, ``(..., k_len, head_dim)``.
        bias: :math:`b_{n-m}` as in T5, ``(..., q_len, k_len)``; without it this is TUPE-A, with it
            TUPE-R.

    Returns:
        ``(..., q_len, k_len)``.

    Raises:
        ValueError: if the four differ in head_dim, by which both terms are scaled.
    """
    _check_head_dim(q=q, k=k, position_q=position_q, position_k=position_k)
    content = q @ k.transpose(-2, -1)
    position = position_q @ position_k.transpose(-2, -1)
    scores = (content + position) / math.sqrt(2 * q.shape[-1])
    return scores if bias is None else scores + bias


def _check_integers(name: str, positions: Tensor) -> None:
    if positions.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"{name} must be int32 or int64, got {positions.dtype}")


def _check_head_dim(**vectors: Tensor) -> None:
    widths = {name: tensor.shape[-1] for name, tensor in vectors.items()}
    if len(set(widths.values())) > 1:
        raise ValueError(
            f"all need the same head_dim, their last dimension, got "
            f"{', '.join(f'{name} with {width}' for name, width in widths.items())}"
        )


def _clipped_rows(table: Tensor, relative_position: Tensor, width: int) -> Tensor:
    """The row of a table of 2c + 1 offsets that each pair uses."""
    if table.dim() != 2 or table.shape[0] % 2 == 0 or table.shape[1] != width:
        raise ValueError(
            f"table has shape {tuple(table.shape)}, needs (2 * max_distance + 1, {width})"
        )
    max_distance = table.shape[0] // 2
    return relative_position.clamp(-max_distance, max_distance) + max_distance


def _pick(per_row: Tensor, rows: Tensor) -> Tensor:
    """From ``(..., a, table rows)`` take, for each pair, the entry that ``rows`` names."""
    return per_row.gather(-1, rows.expand(*per_row.shape[:-1], rows.shape[-1]))


def _bucket_starts(per_direction: int, max_distance: int) -> list[int]:
    """The smallest distance of each bucket but the first, exact."""
    exact = per_direction // 2
    spread = per_direction - exact
    starts = list(range(1, exact + 1))
    for step in range(1, spread):
        # Bucket exact + step starts where (distance / exact)^spread ≥ (max_distance / exact)^step.
        reach = max_distance**step * exact ** (spread - step)
        distance = math.floor(exact * (max_distance / exact) ** (step / spread))
        while distance**spread < reach:
            distance += 1
        starts.append(distance)
    return starts
