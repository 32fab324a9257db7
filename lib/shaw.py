r"""Relative position representations of Shaw et al. (chapter 04).

A key n − m tokens after the query has a learned vector for that offset, which is compared with the
query (``eq-shaw``); a second table does the same for the values (``eq-shaw-values``).
Offsets beyond ± ``max_distance`` share the vector of the last one.

Conventions:

- ``relative_position`` is **key minus query**, n − m: negative for a key before the query.
- ``shaw_scores`` returns the full score, ready for the softmax; ``shaw_bias`` returns its
  position-dependent part, scaled, ready to be added to the scaled q · k.

Source: Shaw et al., *Self-Attention with Relative Position Representations*, 2018,
arXiv:1803.02155, sections 3.2 and 3.3.
"""

import math

import torch
from torch import Tensor, nn

from lib.position import Position
from lib.relative import relative_positions, take_per_pair
from lib.shapes import check_head_dim, check_sizes

__all__ = ["ShawPosition", "shaw_bias", "shaw_scores", "shaw_values"]


def shaw_bias(q: Tensor, key_table: Tensor, relative_position: Tensor) -> Tensor:
    r"""Return Shaw's term on the scores (the part of ``eq-shaw`` that depends on position).

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
    return take_per_pair(q @ key_table.T, rows) / math.sqrt(q.shape[-1])


def shaw_scores(q: Tensor, k: Tensor, key_table: Tensor, relative_position: Tensor) -> Tensor:
    r"""Return Shaw's scores (``eq-shaw``, chapter 04).

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
    check_head_dim(q=q, k=k)
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


class ShawPosition(Position):
    """A learned vector per clipped offset, compared with the query (``eq-shaw``, chapter 04).

    The term on the scores alone; :func:`shaw_values` shows the one on the values.
    All heads share the table, as in the paper, and all layers too.

    Args:
        head_dim: width of a head.
        max_distance: offsets beyond ± this share a vector.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(self, head_dim: int, *, max_distance: int) -> None:
        super().__init__()
        check_sizes(head_dim=head_dim, max_distance=max_distance)
        self.head_dim = head_dim
        self.key_table = nn.Parameter(torch.empty(2 * max_distance + 1, head_dim))
        nn.init.normal_(self.key_table, std=0.02)

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return relative_positions(q_positions, k_positions).unsqueeze(1)

    def bias(self, q: Tensor, k: Tensor, prepared: Tensor) -> Tensor:
        return shaw_bias(q, self.key_table, prepared)


def _clipped_rows(table: Tensor, relative_position: Tensor, width: int) -> Tensor:
    """The row of a table of 2c + 1 offsets that each pair uses."""
    if table.dim() != 2 or table.shape[0] % 2 == 0 or table.shape[1] != width:
        raise ValueError(
            f"table has shape {tuple(table.shape)}, needs (2 * max_distance + 1, {width})"
        )
    max_distance = table.shape[0] // 2
    return relative_position.clamp(-max_distance, max_distance) + max_distance
