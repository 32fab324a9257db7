r"""T5's relative position bias: one learned number per bucket of distances (chapter 04).

Near distances have a bucket each; far ones share buckets of equal width in the logarithm of the
distance (``eq-t5-bucket``). The scores are not scaled (``eq-t5``).

Conventions:

- ``relative_position`` is **key minus query**, n − m, as in T5's code: negative for a key
  before the query.

Source: Raffel et al., *Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer*, 2020, arXiv:1910.10683, section 2.1, and its code.
"""

import math

import torch
from torch import Tensor, nn

from lib.position import Position
from lib.relative import check_integers, relative_positions
from lib.shapes import check_sizes

__all__ = ["T5Position", "relative_position_bucket"]


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
    query share bucket 0 with the query's own position. The boundaries are computed in
    integers, so that rounding of logarithms cannot move a distance to the next bucket.

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
    check_integers("relative_position", relative_position)
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


class T5Position(Position):
    """One learned number per bucket of distances and head; scores are not scaled (``eq-t5``).

    Raffel et al., 2020, arXiv:1910.10683, section 2.1; chapter 04.

    Args:
        n_heads: number of query heads.
        bidirectional: ``True`` in an encoder, ``False`` in a decoder.
        num_buckets: number of buckets, of both directions together.
        max_distance: from here on everything shares one bucket.

    Raises:
        ValueError: if ``n_heads`` is below 1, or as
            :func:`relative_position_bucket`.
    """

    def __init__(
        self, n_heads: int, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128
    ) -> None:
        super().__init__()
        check_sizes(n_heads=n_heads)
        self.n_heads = n_heads
        self.buckets = {
            "bidirectional": bidirectional,
            "num_buckets": num_buckets,
            "max_distance": max_distance,
        }
        relative_position_bucket(torch.zeros(1, dtype=torch.int64), **self.buckets)  # raises here
        self.table = nn.Parameter(torch.empty(num_buckets, n_heads))
        nn.init.normal_(self.table, std=0.02)

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        offsets = relative_positions(q_positions, k_positions)
        bucket = relative_position_bucket(offsets, **self.buckets)
        return self.table[bucket].permute(0, 3, 1, 2)  # (batch or 1, heads, q_len, k_len)

    def bias(self, q: Tensor, k: Tensor, prepared: Tensor) -> Tensor:
        return prepared

    def scale(self, head_dim: int) -> float:
        return 1.0


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
