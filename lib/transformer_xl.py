r"""Transformer-XL's relative position: sinusoids of m − n (chapter 04).

The four terms of a score (:mod:`lib.relative`) stay. Position vectors become encodings of the
difference m − n, with a separate projection, and the query's position vectors become two learned
vectors, u and v, the same at every position (``eq-transformer-xl``).

Conventions:

- The encoding is that of **query minus key**, m − n, as in the paper.
- ``transformer_xl_scores`` returns the full score, ready for the softmax; ``transformer_xl_bias``
  returns all but q · k, scaled, ready to be added to the scaled q · k.
- Queries may have more heads than keys (grouped queries) in ``transformer_xl_bias``: query head
  h then belongs to KV head ``h // (heads / kv_heads)``.

Source: Dai et al., *Transformer-XL*, 2019, arXiv:1901.02860, section 3.3.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lib.position import Position
from lib.rope import apply_rope, rope_tables
from lib.shapes import check_head_dim, check_sizes
from lib.sinusoidal import angular_frequencies, sinusoidal_encoding

__all__ = [
    "TransformerXLPosition",
    "TransformerXLTables",
    "transformer_xl_bias",
    "transformer_xl_scores",
    "transformer_xl_tables",
]


class TransformerXLTables(NamedTuple):
    """What :func:`transformer_xl_bias` needs of the positions."""

    query_cos: Tensor  # (..., q_len, encoding_dim / 2)
    query_sin: Tensor  # (..., q_len, encoding_dim / 2)
    key_encoding: Tensor  # (..., k_len, encoding_dim)


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
    r"""Return Transformer-XL's terms (b), (c) and (d), scaled (``eq-transformer-xl``).

    The encoding r of the difference is never written out for every pair m, n. By ``eq-shift`` of
    chapter 03, in rows, :math:`r_{m-n} = \operatorname{PE}(-n) M(m)^\top`, and :math:`M(m)^\top`
    is RoPE's rotation :math:`R_m`, so a query is rotated once and then compared with every key:

    .. math:: (q_m + v) \cdot (r_{m-n} W_r)
              = \bigl((q_m + v) W_r^\top R_m^\top\bigr) \cdot \operatorname{PE}(-n).

    Args:
        q: ``(batch, heads, q_len, head_dim)``.
        k: ``(batch, kv_heads, k_len, head_dim)``.
        w_r: :math:`W_r`, ``(heads, encoding_dim, head_dim)``, one per head (the paper's
            :math:`W_{k,R}`).
        u: ``(heads, head_dim)``.
        v: ``(heads, head_dim)``.
        tables: from :func:`transformer_xl_tables`, broadcastable over batch and heads.

    Returns:
        ``(batch, heads, q_len, k_len)``.

    Raises:
        ValueError: if ``heads`` is not a multiple of ``kv_heads``, or ``w_r``, ``u`` and ``v`` are
            for other heads, or ``q`` and ``k`` differ in head_dim.
    """
    check_head_dim(q=q, k=k)
    heads, kv_heads, head_dim = q.shape[-3], k.shape[-3], q.shape[-1]
    if heads % kv_heads:
        raise ValueError(f"heads must be a multiple of kv_heads, got {heads} and {kv_heads}")
    if not (w_r.shape[0], w_r.shape[-1]) == u.shape == v.shape == (heads, head_dim):
        raise ValueError(
            f"w_r {tuple(w_r.shape)}, u {tuple(u.shape)} and v {tuple(v.shape)} must be for "
            f"the queries' (heads, head_dim) = {(heads, head_dim)}"
        )
    rotated = (q + v.unsqueeze(-2)) @ w_r.mT  # (batch, heads, q_len, encoding_dim)
    rotated = apply_rope(rotated, tables.query_cos, tables.query_sin, layout="interleaved")
    position = rotated @ tables.key_encoding.transpose(-2, -1).to(rotated.dtype)
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
    r"""Return Transformer-XL's scores (``eq-transformer-xl``, chapter 04).

    .. math::

        \begin{aligned}
        s_{mn} &= \frac{1}{\sqrt{d_k}} \Bigl(\underbrace{q_m \cdot k_n}_{(a)}
        + \underbrace{q_m \cdot (r_{m-n} W_r)}_{(b)} \\
        &\qquad + \underbrace{u \cdot k_n}_{(c)}
        + \underbrace{v \cdot (r_{m-n} W_r)}_{(d)}\Bigr)
        \end{aligned}

    with :math:`r_{m-n}` the sinusoidal encoding of m − n. Dai et al., 2019, arXiv:1901.02860,
    section 3.3. The encoding holds sin and cos interleaved; the authors' code holds all sines
    first, a permutation of the rows of ``w_r``.

    Args:
        q: ``(batch, heads, q_len, head_dim)``.
        k: ``(batch, heads, k_len, head_dim)``.
        w_r: ``(heads, encoding_dim, head_dim)``.
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
    check_head_dim(q=q, k=k)
    wide = torch.promote_types(q.dtype, torch.float32)
    tables = transformer_xl_tables(
        q_positions.unsqueeze(-2), k_positions.unsqueeze(-2), w_r.shape[-2], base=base, dtype=wide
    )
    content = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return content + transformer_xl_bias(q, k, w_r, u, v, tables)


class TransformerXLPosition(Position):
    """Sinusoids of m − n seen through a learned map, and two learned queries.

    This is ``eq-transformer-xl`` of chapter 04.

    Args:
        n_heads: number of query heads.
        head_dim: width of a head.
        encoding_dim: width of the sinusoidal encoding, even; ``n_heads * head_dim`` if not given.
        base: as in :func:`lib.sinusoidal.sinusoidal_encoding`.

    Raises:
        ValueError: if a size is below 1, ``encoding_dim`` is odd or ``base`` is not above 1.
    """

    def __init__(
        self,
        n_heads: int,
        head_dim: int,
        *,
        encoding_dim: int | None = None,
        base: float = 10000.0,
    ) -> None:
        super().__init__()
        check_sizes(n_heads=n_heads, head_dim=head_dim)
        self.n_heads, self.head_dim = n_heads, head_dim
        self.encoding_dim = n_heads * head_dim if encoding_dim is None else encoding_dim
        self.base = base
        angular_frequencies(self.encoding_dim, base=base)  # raises here, not at the first forward
        # stored as nn.Linear would, (out, in)
        self.w_r = nn.Parameter(torch.empty(n_heads, head_dim, self.encoding_dim))
        self.u = nn.Parameter(torch.empty(n_heads, head_dim))
        self.v = nn.Parameter(torch.empty(n_heads, head_dim))
        for parameter in (self.w_r, self.u, self.v):
            nn.init.normal_(parameter, std=0.02)

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> TransformerXLTables:
        return transformer_xl_tables(
            q_positions.unsqueeze(1),
            k_positions.unsqueeze(1),
            self.encoding_dim,
            base=self.base,
            dtype=self.table_dtype,
        )

    def bias(self, q: Tensor, k: Tensor, prepared: TransformerXLTables) -> Tensor:
        return transformer_xl_bias(q, k, self.w_r.mT, self.u, self.v, prepared)
