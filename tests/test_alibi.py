"""lib.alibi: by hand, against BLOOM's, monotone recency, errors, dtypes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.alibi import alibi_bias, alibi_slopes

Q_POSITIONS = torch.tensor([[9, 2, 40], [0, 7, 7]])
K_POSITIONS = torch.tensor([[5, 9, 0, 41], [7, 1, 0, 300]])


def test_slopes_of_eight_heads_are_the_papers():
    expected = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    for rule in ("official", "geometric"):
        assert alibi_slopes(8, rule=rule).tolist() == expected


def test_six_heads_by_hand():
    # Official: those of four heads, then the 1st and 3rd of eight. Paper's sentence: 2^(−8h/6).
    official = [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]
    geometric = [2 ** (-8 * h / 6) for h in range(1, 7)]
    assert alibi_slopes(6, dtype=torch.float64).tolist() == official
    assert alibi_slopes(6, rule="geometric", dtype=torch.float64).tolist() == pytest.approx(
        geometric, rel=1e-15
    )


def test_bias_by_hand():
    result = alibi_bias(2, torch.tensor([4, 6]), torch.tensor([5, 6, 0]))
    distance = torch.tensor([[1.0, 2.0, 4.0], [1.0, 0.0, 6.0]])
    assert torch.equal(result, torch.stack((-distance / 16, -distance / 256)))


def test_bias_loop():
    result = alibi_bias(5, Q_POSITIONS, K_POSITIONS, dtype=torch.float64)
    slopes = alibi_slopes(5, dtype=torch.float64)
    assert result.shape == (2, 5, 3, 4)
    for b in range(2):
        for h in range(5):
            for i in range(3):
                for j in range(4):
                    away = abs(Q_POSITIONS[b, i].item() - K_POSITIONS[b, j].item())
                    assert result[b, h, i, j].item() == -slopes[h].item() * away


@pytest.mark.parametrize("n_heads", [8, 6, 12, 1, 3, 7])
def test_bloom_has_the_same_slopes_and_weights(n_heads):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    # BLOOM adds slope · n: another bias, the same causal weights.
    batch, length = 2, 11
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[1, :4] = 0  # left padding: BLOOM counts positions from the first real token
    bloom = build_alibi_tensor(mask, n_heads, torch.float32).view(batch, n_heads, 1, length)
    torch.testing.assert_close(bloom[0, :, 0, 1], alibi_slopes(n_heads), rtol=1e-6, atol=0)

    positions = (mask.cumsum(-1) - 1) * mask
    ours = alibi_bias(n_heads, positions, positions)
    assert not torch.allclose(ours, bloom.expand_as(ours))
    index = torch.arange(length)
    allowed = (index <= index[:, None]) & mask[:, None, None, :].bool()
    allowed = allowed | torch.eye(length, dtype=torch.bool)  # so that padding has a key as well
    scores = torch.randn(batch, n_heads, length, length, generator=torch.Generator().manual_seed(3))
    weights = [
        (scores + bias).masked_fill(~allowed, -torch.inf).softmax(-1) for bias in (ours, bloom)
    ]
    torch.testing.assert_close(*weights, rtol=1e-5, atol=1e-6)


@given(n_heads=st.integers(1, 70), rule=st.sampled_from(["official", "geometric"]))
def test_slopes_are_positive_distinct_and_below_one(n_heads, rule):
    slopes = alibi_slopes(n_heads, rule=rule, dtype=torch.float64).tolist()
    assert len(set(slopes)) == n_heads
    assert all(0 < slope < 1 for slope in slopes)
    assert min(slopes) == 2**-8  # both rules reach 2^−8, at the last head of a sequence


@given(n_heads=st.integers(1, 70))
def test_slopes_fall_from_head_to_head_and_the_official_ones_start_again(n_heads):
    power = 1 << (n_heads.bit_length() - 1)
    slopes = alibi_slopes(n_heads, dtype=torch.float64)
    for part in (slopes[:power], slopes[power:], alibi_slopes(n_heads, rule="geometric")):
        assert (part.diff() < 0).all()
    assert slopes.argmax() == (0 if n_heads == power else power)


@given(power=st.integers(0, 7))
def test_rules_agree_at_powers_of_two(power):
    assert torch.equal(alibi_slopes(2**power), alibi_slopes(2**power, rule="geometric"))


@given(n_heads=st.sampled_from([3, 5, 6, 7, 12, 20, 33]))
def test_rules_differ_elsewhere(n_heads):
    assert not torch.allclose(alibi_slopes(n_heads), alibi_slopes(n_heads, rule="geometric"))


@given(shift=st.integers(-10_000, 10_000))
def test_only_distance_matters(shift):
    assert torch.equal(
        alibi_bias(3, Q_POSITIONS + shift, K_POSITIONS + shift),
        alibi_bias(3, Q_POSITIONS, K_POSITIONS),
    )


def test_farther_is_lower_on_both_sides():
    bias = alibi_bias(4, torch.tensor([50]), torch.arange(0, 100, 3))[:, 0]
    assert torch.all(bias[:, :17].diff() > 0)
    assert torch.all(bias[:, 17:].diff() < 0)


def test_caller_errors():
    with pytest.raises(ValueError, match="n_heads=0"):
        alibi_slopes(0)
    with pytest.raises(ValueError, match="'linear'"):
        alibi_bias(2, Q_POSITIONS, K_POSITIONS, rule="linear")


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-15), (torch.float32, 2e-7), (torch.bfloat16, 1e-2)],
)
def test_dtypes(dtype, tolerance):
    result = alibi_bias(6, Q_POSITIONS, K_POSITIONS, rule="geometric", dtype=dtype)
    assert result.dtype == dtype
    away = (Q_POSITIONS[:, :, None] - K_POSITIONS[:, None, :]).abs().double()
    exact = torch.stack([-away * math.exp2(-8 * h / 6) for h in range(1, 7)], dim=1)
    torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=0)


def test_int32_positions():
    result = alibi_bias(3, Q_POSITIONS.int(), K_POSITIONS.int())
    assert torch.equal(result, alibi_bias(3, Q_POSITIONS, K_POSITIONS))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_gives_the_same():
    on_gpu = alibi_bias(6, Q_POSITIONS.cuda(), K_POSITIONS.cuda(), rule="geometric")
    torch.testing.assert_close(
        on_gpu.cpu(), alibi_bias(6, Q_POSITIONS, K_POSITIONS, rule="geometric")
    )
