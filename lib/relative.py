r"""Relative position: n − m, the four terms of a score, and what DeBERTa and TUPE keep of them.

With inputs x + p (content plus position), a score is a sum of four terms (``eq-four-terms``,
chapter 04). Each relative scheme keeps some, drops others, and lets the rest depend on how far
apart query and key are. That is a choice, not algebra. The schemes that a model can be made with
have modules of their own: :mod:`lib.shaw`, :mod:`lib.transformer_xl`, :mod:`lib.t5`.

Conventions:

- ``relative_position`` is **key minus query**, n − m, as in T5's code and Shaw's formulas:
  negative for a key before the query. (Transformer-XL and DeBERTa write m − n.)
- Vectors are rows, and functions take matrices as the formulas have them: q = x W_q is
  ``x @ w_q`` with ``w_q`` of shape ``(d_model, head_dim)``. :class:`torch.nn.Linear` stores the
  transpose: pass ``linear.weight.T``.
- ``..._scores`` returns the full score, ready for the softmax.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from lib.shapes import check_head_dim

__all__ = [
    "ScoreTerms",
    "check_integers",
    "deberta_scores",
    "decompose_scores",
    "relative_positions",
    "take_per_pair",
    "tupe_scores",
]


class ScoreTerms(NamedTuple):
    """The four terms of a score, each ``(..., q_len, k_len)``; the query's part is named first."""

    content_content: Tensor
    content_position: Tensor
    position_content: Tensor
    position_position: Tensor


def relative_positions(q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """Return n − m for every query and key.

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
    check_integers("q_positions", q_positions)
    check_integers("k_positions", k_positions)
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
        w_q: :math:`W_q`, ``(d_model, head_dim)``.
        w_k: :math:`W_k`, ``(d_model, head_dim)``.

    Returns:
        The four terms, each ``(..., length, length)``; their sum is the score before it is scaled.

    Raises:
        ValueError: if the widths do not fit.
    """
    if not x.shape[-1] == p.shape[-1] == w_q.shape[0] == w_k.shape[0]:
        raise ValueError(
            f"the last dimension of x {tuple(x.shape)} and p {tuple(p.shape)} and the first of w_q "
            f"{tuple(w_q.shape)} and w_k {tuple(w_k.shape)} must be the same, d_model"
        )
    if w_q.shape != w_k.shape:
        raise ValueError(
            f"w_q {tuple(w_q.shape)} and w_k {tuple(w_k.shape)} must be (d_model, head_dim) both: "
            "a query and a key need the same number of components"
        )
    x, p = torch.broadcast_tensors(x, p)
    x_q, x_k = x @ w_q, x @ w_k  # (..., length, head_dim)
    p_q, p_k = p @ w_q, p @ w_k
    x_k, p_k = x_k.transpose(-2, -1), p_k.transpose(-2, -1)
    return ScoreTerms(x_q @ x_k, x_q @ p_k, p_q @ x_k, p_q @ p_k)


def deberta_scores(
    q: Tensor, k: Tensor, position_q: Tensor, position_k: Tensor, relative_position: Tensor
) -> Tensor:
    r"""Return DeBERTa's disentangled scores (``eq-deberta``, chapter 04).

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
    check_head_dim(q=q, k=k, position_q=position_q, position_k=position_k)
    rows = position_q.shape[-2]
    if position_q.shape != position_k.shape or rows % 2:
        raise ValueError(
            "position_q and position_k need the same, even number of rows, got "
            f"{tuple(position_q.shape)} and {tuple(position_k.shape)}"
        )
    delta_mn = (rows // 2 - relative_position).clamp(0, rows - 1)
    delta_nm = (rows // 2 + relative_position).clamp(0, rows - 1)
    content_position = take_per_pair(q @ position_k.transpose(-2, -1), delta_mn)
    by_key = take_per_pair(
        k @ position_q.transpose(-2, -1), delta_nm.transpose(-2, -1)
    )  # (..., n, m)
    content = q @ k.transpose(-2, -1)
    return (content + content_position + by_key.transpose(-2, -1)) / math.sqrt(3 * q.shape[-1])


def tupe_scores(
    q: Tensor, k: Tensor, position_q: Tensor, position_k: Tensor, *, bias: Tensor | None = None
) -> Tensor:
    r"""Return TUPE's untied scores (``eq-tupe``, chapter 04).

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
    check_head_dim(q=q, k=k, position_q=position_q, position_k=position_k)
    content = q @ k.transpose(-2, -1)
    position = position_q @ position_k.transpose(-2, -1)
    scores = (content + position) / math.sqrt(2 * q.shape[-1])
    return scores if bias is None else scores + bias


def check_integers(name: str, positions: Tensor) -> None:
    """Refuse positions that are not int32 or int64.

    Raises:
        ValueError: if they are of another type; the message has the name given.
    """
    if positions.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"{name} must be int32 or int64, got {positions.dtype}")


def take_per_pair(per_row: Tensor, rows: Tensor) -> Tensor:
    """Take, for each query and key, the entry of a table's row that belongs to their offset.

    Args:
        per_row: ``(..., q_len, table rows)``: each query's product with every row of a table.
        rows: int64 ``(..., q_len, k_len)``: the row for each pair.

    Returns:
        ``(..., q_len, k_len)``.
    """
    return per_row.gather(-1, rows.expand(*per_row.shape[:-1], rows.shape[-1]))
