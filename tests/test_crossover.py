"""Tests of :mod:`lib.crossover`, on times made by hand."""

import pytest

from lib.crossover import RatioSpread, crossover, ratio_spread

ONE = [1.0, 1.0, 1.0, 1.0, 1.0]


def around(middle):
    """Five rounds whose ratio to 1 has the quartiles middle - 0.1 and middle + 0.1."""
    return [middle - 0.3, middle - 0.1, middle, middle + 0.1, middle + 0.3]


def test_ratios_are_formed_within_a_round():
    # A machine that gets ten times slower in the middle changes no ratio.
    assert ratio_spread([2.0, 20.0, 2.0], [1.0, 10.0, 1.0]) == RatioSpread(2.0, 2.0, 2.0)
    low, median, high = ratio_spread(around(2.0), ONE)
    assert (low, median, high) == pytest.approx((1.9, 2.0, 2.1))


def test_the_first_length_that_stays_above():
    uncached = [around(middle) for middle in (0.9, 1.1, 1.5, 3.0)]
    assert crossover([1, 2, 4, 8], uncached, [ONE] * 4) == 4


def test_a_length_above_the_threshold_within_its_spread_does_not_count():
    uncached = [around(1.25), around(1.31), around(5.0)]  # first quartiles 1.15, 1.21
    assert crossover([1, 2, 4], uncached, [ONE] * 3) == 2


def test_on_the_threshold_is_not_above():
    flat = [[1.2, 1.2, 1.2], [2.0, 2.0, 2.0]]
    assert crossover([4, 8], flat, [[1.0] * 3] * 2) == 8


def test_what_falls_back_begins_again():
    uncached = [around(middle) for middle in (2.0, 1.0, 2.0, 3.0)]
    assert crossover([1, 2, 4, 8], uncached, [ONE] * 4) == 4
    assert crossover([1, 2], [around(2.0), around(1.0)], [ONE] * 2) is None


def test_never_and_always():
    assert crossover([1, 2], [around(1.0), around(1.1)], [ONE] * 2) is None
    assert crossover([3, 5], [around(4.0), around(4.0)], [ONE] * 2) == 3


def test_the_threshold_is_the_callers():
    uncached = [around(1.5), around(2.5)]
    assert crossover([1, 2], uncached, [ONE] * 2, threshold=2.0) == 2
    assert crossover([1, 2], uncached, [ONE] * 2, threshold=1.0) == 1


@pytest.mark.parametrize(
    ("above", "below", "message"),
    [
        ([1.0, 2.0], [1.0], "got 2 and 1"),
        ([1.0], [1.0], "got 1 and 1"),
        ([1.0, 0.0], [1.0, 1.0], "got 0.0"),
        ([1.0, 1.0], [1.0, float("inf")], "got inf"),
        ([1.0, float("nan")], [1.0, 1.0], "got nan"),
    ],
)
def test_times_that_are_refused(above, below, message):
    with pytest.raises(ValueError, match=message):
        ratio_spread(above, below)


def test_lengths_that_are_refused():
    for lengths in ([], [2, 2], [4, 1]):
        with pytest.raises(ValueError, match="lengths must increase"):
            crossover(lengths, [ONE] * len(lengths), [ONE] * len(lengths))
    with pytest.raises(ValueError, match=r"2 lengths need as many lists of times, got 2 .* and 1"):
        crossover([1, 2], [ONE] * 2, [ONE])
