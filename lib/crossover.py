r"""The length from which a cache pays: the ratio of two times, and its spread (chapter 10).

Both ways are timed in turn, round after round, so that both times of a round were measured
under the same load. Their ratio is formed within each round; its spread over the
rounds is the interquartile range.

``thm-payoff`` of chapter 10 predicts both from a model of the processor; here they are measured.
"""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

__all__ = ["RatioSpread", "crossover", "ratio_spread"]


class RatioSpread(NamedTuple):
    """A ratio of times over several rounds: first quartile, median, third quartile."""

    low: float
    median: float
    high: float


def ratio_spread(above: Sequence[float], below: Sequence[float]) -> RatioSpread:
    """The ratio of two ways' times, round by round.

    Args:
        above: seconds of each round; two rounds or more.
        below: seconds of the other way in the same rounds.

    Returns:
        Quartiles and median of ``above / below``.

    Raises:
        ValueError: if the numbers of rounds differ or are below 2, or a time is not positive and
            finite.

    Example:
        >>> ratio_spread([2.0, 4.0, 6.0], [1.0, 1.0, 1.0])
        RatioSpread(low=3.0, median=4.0, high=5.0)
    """
    if len(above) != len(below) or len(above) < 2:
        raise ValueError(
            "need the same number of rounds of both ways, at least 2, to know a spread: got "
            f"{len(above)} and {len(below)}"
        )
    for seconds in (*above, *below):
        if not 0 < seconds < math.inf:
            raise ValueError(f"a time must be positive and finite, got {seconds}")
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return RatioSpread(*statistics.quantiles(ratios, n=4, method="inclusive"))


def crossover(
    lengths: Sequence[int],
    uncached: Sequence[Sequence[float]],
    cached: Sequence[Sequence[float]],
    *,
    threshold: float = 1.2,
) -> int | None:
    """The first length from which the ratio stays above a threshold, beyond its spread.

    "Beyond its spread" means that the first quartile of the ratio lies above the threshold, and
    "stays" that it does so at this length and at every longer one that was measured.

    Args:
        lengths: tokens, increasing.
        uncached: for each length, seconds of each round without the cache.
        cached: likewise with the cache, in the same rounds.
        threshold: the ratio of times, without over with the cache, that has to be exceeded.

    Returns:
        The length, in tokens; ``None`` if there is none.

    Raises:
        ValueError: if the lengths do not increase, there are none, their number is not that of
            the times, or as :func:`ratio_spread`.

    Example:
        >>> crossover([1, 8, 64], [[3, 3], [4, 4], [9, 9]], [[3, 3], [3, 3], [3, 3]])
        8
    """
    lengths = list(lengths)
    if not lengths or any(b <= a for a, b in pairwise(lengths)):
        raise ValueError(f"lengths must increase, one at least, got {lengths}")
    if not len(lengths) == len(uncached) == len(cached):
        raise ValueError(
            f"{len(lengths)} lengths need as many lists of times, got {len(uncached)} without "
            f"and {len(cached)} with the cache"
        )
    first = None
    for length, above, below in zip(lengths, uncached, cached, strict=True):
        if ratio_spread(above, below).low <= threshold:
            first = None
        elif first is None:
            first = length
    return first
