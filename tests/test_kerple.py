"""lib.kerple: by hand, a loop written from the formula, ALiBi near the query, errors, dtypes."""

import math

import pytest
import torch

from lib.alibi import alibi_bias
from lib.kerple import KerplePosition, kerple_bias

Q_POSITIONS = torch.tensor([[7, 0, 31], [4, 4, 90]])
K_POSITIONS = torch.tensor([[3, 7, 0, 40], [11, 4, 5, 80]])
R_1, R_2 = torch.tensor([[0.3, 1.0, 2.5], [2.0, 0.01, 0.4]], dtype=torch.float64)


def test_by_hand():
    # distances 3, 1, 0; with r_1 = 2 and r_2 = 1: -2 ln 4, -2 ln 2, 0
    bias = kerple_bias(
        torch.tensor([2.0]), torch.tensor([1.0]), torch.tensor([5]), torch.tensor([2, 6, 5])
    )
    expected = torch.tensor([[[-4 * math.log(2), -2 * math.log(2), 0.0]]])
    torch.testing.assert_close(bias, expected)


def test_loop():
    bias = kerple_bias(R_1, R_2, Q_POSITIONS, K_POSITIONS)
    assert bias.shape == (2, 3, 3, 4)
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, bias.shape)).tolist():
        distance = abs(Q_POSITIONS[b, i].item() - K_POSITIONS[b, j].item())
        expected = -R_1[h].item() * math.log(1 + R_2[h].item() * distance)
        assert bias[b, h, i, j].item() == pytest.approx(expected, abs=1e-12)


def test_near_the_query_it_is_alibi_with_the_slope_r_1_r_2():
    slope = alibi_bias(1, torch.tensor([1]), torch.tensor([0]), dtype=torch.float64).neg().flatten()
    r_2 = torch.tensor([1e-9], dtype=torch.float64)
    near = kerple_bias(slope / r_2, r_2, Q_POSITIONS, K_POSITIONS)
    expected = alibi_bias(1, Q_POSITIONS, K_POSITIONS, dtype=torch.float64)
    torch.testing.assert_close(near, expected, rtol=1e-6, atol=0)


def test_far_away_every_doubling_of_the_distance_costs_the_same():
    far = 2 ** torch.arange(36, 50)
    steps = kerple_bias(R_1, R_2, far[:1] - far[:1], far)[:, 0].diff(dim=-1)
    torch.testing.assert_close(steps, -R_1[:, None] * math.log(2) * torch.ones_like(steps))


def test_the_module_is_the_function_and_begins_positive():
    torch.manual_seed(0)
    position = KerplePosition(500).double()
    r_1, r_2 = position.log_r_1.exp(), position.log_r_2.exp()
    for numbers, largest in ((r_1, 2.0), (r_2, 1.0)):
        assert 0.0099 < numbers.min() < 0.05 * largest
        assert 0.95 * largest < numbers.max() <= largest
    prepared = position.prepare(Q_POSITIONS, K_POSITIONS)
    bias = position.bias(None, None, prepared)
    torch.testing.assert_close(bias, kerple_bias(r_1, r_2, Q_POSITIONS, K_POSITIONS))
    assert position.scale(16) == 0.25


def test_distances_are_not_rounded_with_the_model():
    position = KerplePosition(1).to(torch.bfloat16)
    torch.nn.init.zeros_(position.log_r_1)
    torch.nn.init.zeros_(position.log_r_2)
    bias = position.prepare(torch.tensor([[1001]]), torch.tensor([[0, 1]]))
    assert bias.dtype == torch.float32
    assert bias.flatten().tolist() == pytest.approx([-math.log(1002), -math.log(1001)], rel=1e-6)


def test_errors():
    with pytest.raises(ValueError, match="n_heads must be 1 or more, got n_heads=0"):
        KerplePosition(0)
    with pytest.raises(ValueError, match=r"r_1 \(3,\) and r_2 \(2,\) must be \(n_heads,\) both"):
        kerple_bias(R_1, R_2[:2], Q_POSITIONS, K_POSITIONS)
    with pytest.raises(ValueError, match="q_positions must be int32 or int64"):
        kerple_bias(R_1, R_2, Q_POSITIONS.float(), K_POSITIONS)
