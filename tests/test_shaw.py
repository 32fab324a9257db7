"""lib.shaw: by hand, loops written from the paper's formulas, errors. See also test_relative."""

import math

import pytest
import torch

from lib.relative import relative_positions
from lib.shaw import shaw_bias, shaw_scores, shaw_values
from tests.scores import (
    BATCH,
    EXACT,
    HEAD_DIM,
    HEADS,
    K_LEN,
    OFFSETS,
    Q_LEN,
    VALUE_DIM,
    K,
    Q,
    at,
    dot,
    make,
    per_pair,
)


def clip(x, limit):
    return max(-limit, min(limit, x))


def test_shaw_by_hand():
    # One component, max_distance 1: a = 10 for a key before, 20 at the query, 30 behind.
    q, k = torch.tensor([[2.0]]), torch.tensor([[1.0], [1.0], [1.0], [1.0]])
    offsets = relative_positions(torch.tensor([5]), torch.tensor([0, 4, 5, 6]))
    table = torch.tensor([[10.0], [20.0], [30.0]])
    assert shaw_bias(q, table, offsets).tolist() == [[20.0, 20.0, 40.0, 60.0]]
    assert shaw_scores(q, k, table, offsets).tolist() == [[22.0, 22.0, 42.0, 62.0]]


@pytest.mark.parametrize("limit", [1, 4, 50])
def test_shaw_loop(limit):
    table = make(2 * limit + 1, HEAD_DIM, seed=6)

    def score(b, h, i, j):
        m, n = at(b, i, j)
        key = K[b, h, j] + table[clip(n - m, limit) + limit]
        return dot(Q[b, h, i], key) / math.sqrt(HEAD_DIM)

    torch.testing.assert_close(shaw_scores(Q, K, table, OFFSETS), per_pair(score), **EXACT)


def test_shaw_values_loop():
    limit = 5
    weights = make(BATCH, HEADS, Q_LEN, K_LEN).softmax(-1)
    value, table = make(BATCH, HEADS, K_LEN, VALUE_DIM), make(2 * limit + 1, VALUE_DIM, seed=7)
    expected = torch.zeros(BATCH, HEADS, Q_LEN, VALUE_DIM, dtype=torch.float64)
    for b in range(BATCH):
        for i in range(Q_LEN):
            for j in range(K_LEN):
                m, n = at(b, i, j)
                row = table[clip(n - m, limit) + limit]
                for h in range(HEADS):
                    expected[b, h, i] += weights[b, h, i, j] * (value[b, h, j] + row)
    torch.testing.assert_close(shaw_values(weights, value, table, OFFSETS), expected, **EXACT)


def test_shaw_errors():
    with pytest.raises(ValueError, match=r"\(4, 6\), needs \(2 \* max_distance \+ 1, 6\)"):
        shaw_scores(Q, K, make(4, HEAD_DIM), OFFSETS)
    with pytest.raises(ValueError, match=r"\(5, 7\), needs .*, 6\)"):
        shaw_bias(Q, make(5, 7), OFFSETS)
    with pytest.raises(ValueError, match=r"\(3, 5, 6\), needs .*, 6\)"):
        shaw_bias(Q, make(3, 5, HEAD_DIM), OFFSETS)
    weights, value = make(BATCH, 1, Q_LEN, K_LEN), make(BATCH, 1, K_LEN, VALUE_DIM)
    with pytest.raises(ValueError, match=r"\(5, 6\), needs .*, 9\)"):
        shaw_values(weights, value, make(5, 6), OFFSETS)


def test_head_dims_must_agree():
    with pytest.raises(ValueError, match=r"same head_dim.* got q with 6, k with 5"):
        shaw_scores(Q, K[..., :-1], make(5, HEAD_DIM), OFFSETS)
