"""lib.t5: buckets by hand, those of transformers, every boundary in exact arithmetic, errors."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.t5 import T5Position, relative_position_bucket


def bucket_of(offset, bidirectional, num_buckets, max_distance):
    """Say in exact arithmetic what the paper's code says with floating point logarithms."""
    first = 0
    if bidirectional:
        num_buckets //= 2
        first = num_buckets if offset > 0 else 0
        distance = abs(offset)
    else:
        distance = max(-offset, 0)
    exact = num_buckets // 2
    if distance < exact:
        return first + distance
    spread = num_buckets - exact
    # floor(spread · log(distance/exact) / log(max_distance/exact)) ≥ s, without logarithms
    steps = [
        step
        for step in range(spread)
        if Fraction(distance, exact) ** spread >= Fraction(max_distance, exact) ** step
    ]
    return first + exact + max(steps)


SETTINGS = [(32, 128), (32, 16), (8, 20), (6, 100), (40, 1000), (4, 3)]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_by_hand(bidirectional):
    offsets = torch.tensor([-128, -91, -90, -16, -15, -8, -7, -1, 0, 1, 7, 8, 11, 12, 127, 128])
    two_ways = [15, 15, 14, 10, 9, 8, 7, 1, 0, 17, 23, 24, 24, 25, 31, 31]
    one_way = [31, 29, 29, 16, 15, 8, 7, 1] + 8 * [0]
    result = relative_position_bucket(offsets, bidirectional=bidirectional)
    assert result.tolist() == (two_ways if bidirectional else one_way)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), SETTINGS[:5])
def test_buckets_are_those_of_t5(bidirectional, num_buckets, max_distance):
    from transformers.models.t5.modeling_t5 import T5Attention

    if max_distance == 16 and not bidirectional:
        max_distance = 17  # 16 of 16 exact buckets: its code divides by log 1
    offsets = torch.arange(-1000, 1001).flip(0)
    expected = T5Attention._relative_position_bucket(
        offsets, bidirectional, num_buckets, max_distance
    )
    result = relative_position_bucket(
        offsets, bidirectional=bidirectional, num_buckets=num_buckets, max_distance=max_distance
    )
    assert torch.equal(result, expected)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), SETTINGS)
def test_every_boundary(bidirectional, num_buckets, max_distance):
    if max_distance <= num_buckets // (4 if bidirectional else 2):
        max_distance = num_buckets
    options = {
        "bidirectional": bidirectional,
        "num_buckets": num_buckets,
        "max_distance": max_distance,
    }
    offsets = torch.arange(-max_distance - 2, max_distance + 3)
    result = relative_position_bucket(offsets, **options).tolist()
    expected = [bucket_of(offset, **options) for offset in offsets.tolist()]
    wrong = [
        f"offset {offset}: bucket {got}, not {want}"
        for offset, got, want in zip(offsets.tolist(), result, expected, strict=True)
        if got != want
    ]
    assert not wrong
    assert min(result) == 0
    assert max(result) == num_buckets - 1


@given(offset=st.integers(-(10**12), 10**12), bidirectional=st.booleans())
def test_buckets_grow_with_distance(offset, bidirectional):
    pair = torch.tensor([offset, offset + (1 if offset > 0 else -1)])  # the second is farther
    near, far = relative_position_bucket(pair, bidirectional=bidirectional).tolist()
    assert 0 <= near <= far < 32


def test_a_direction_each():
    offsets = torch.arange(1, 400)
    before = relative_position_bucket(-offsets, bidirectional=True)
    behind = relative_position_bucket(offsets, bidirectional=True)
    assert torch.equal(behind, before + 16)
    assert relative_position_bucket(offsets, bidirectional=False).eq(0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bidirectional": True, "num_buckets": 7}, r"num_buckets=7 cannot serve 2"),
        ({"bidirectional": True, "num_buckets": 2}, r"num_buckets=2 cannot serve 2"),
        ({"bidirectional": False, "num_buckets": 1}, r"num_buckets=1 cannot serve 1"),
        ({"bidirectional": False, "max_distance": 16}, r"max_distance=16 must be above 16"),
        ({"bidirectional": True, "max_distance": 8}, r"max_distance=8 must be above 8"),
    ],
)
def test_bucket_errors(options, message):
    with pytest.raises(ValueError, match=message):
        relative_position_bucket(torch.tensor([1]), **options)


def test_offsets_must_be_integers():
    with pytest.raises(ValueError, match="relative_position must be int32 or int64"):
        relative_position_bucket(torch.tensor([2.5]), bidirectional=True)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_buckets_on_a_gpu():
    offsets = torch.arange(-1000, 1001)
    on_gpu = relative_position_bucket(offsets.cuda(), bidirectional=True)
    assert torch.equal(on_gpu.cpu(), relative_position_bucket(offsets, bidirectional=True))


def test_the_module_by_hand():
    position = T5Position(2, bidirectional=True, num_buckets=4, max_distance=4)
    with torch.no_grad():  # bucket 0: here, 1: before, 3: behind
        position.table.copy_(torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]))
    prepared = position.prepare(torch.tensor([[5]]), torch.tensor([[5, 4, 9]]))
    assert position.bias(None, None, prepared).tolist() == [[[[0.0, 2.0, 6.0]], [[1.0, 3.0, 7.0]]]]
    assert position.scale(64) == 1.0
