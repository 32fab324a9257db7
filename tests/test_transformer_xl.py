"""lib.transformer_xl: loops written from the paper's formula, grouped queries, errors. See also
test_relative.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.transformer_xl import (
    transformer_xl_bias,
    transformer_xl_scores,
    transformer_xl_tables,
)
from tests.scores import (
    BATCH,
    ENCODING_DIM,
    EXACT,
    HEAD_DIM,
    HEADS,
    K_LEN,
    K_POSITIONS,
    Q_LEN,
    Q_POSITIONS,
    K,
    Q,
    at,
    dot,
    make,
    per_pair,
)


def encoding(position):
    angles = [position / 10000 ** (2 * i / ENCODING_DIM) for i in range(ENCODING_DIM // 2)]
    return [f(angle) for angle in angles for f in (math.sin, math.cos)]


@pytest.fixture
def learned():
    return {
        "w_r": make(HEADS, ENCODING_DIM, HEAD_DIM, seed=8),
        "u": make(HEADS, HEAD_DIM, seed=9),
        "v": make(HEADS, HEAD_DIM, seed=10),
    }


def xl_terms(q, key, learned, b, h, i, j):
    """Terms (a), (b), (c), (d) of the paper, from m − n, unscaled."""
    m, n = at(b, i, j)
    projected = torch.tensor(encoding(m - n), dtype=torch.float64) @ learned["w_r"][h]
    u, v = learned["u"][h], learned["v"][h]
    return dot(q[b, h, i], key), dot(q[b, h, i], projected), dot(u, key), dot(v, projected)


def test_transformer_xl_loop(learned):
    def score(b, h, i, j):
        return sum(xl_terms(Q, K[b, h, j], learned, b, h, i, j)) / math.sqrt(HEAD_DIM)

    result = transformer_xl_scores(
        Q, K, **learned, q_positions=Q_POSITIONS, k_positions=K_POSITIONS
    )
    torch.testing.assert_close(result, per_pair(score), **EXACT)


def test_transformer_xl_grouped_queries(learned):
    q, learned = (
        Q.repeat(1, 2, 1, 1),
        {name: x.repeat(2, *[1] * (x.dim() - 1)) for name, x in learned.items()},
    )
    q, learned["u"] = make(*q.shape, seed=11), make(*learned["u"].shape, seed=12)
    tables = transformer_xl_tables(
        Q_POSITIONS[:, None], K_POSITIONS[:, None], ENCODING_DIM, dtype=torch.float64
    )
    result = transformer_xl_bias(q, K, **learned, tables=tables)
    assert result.shape == (BATCH, 2 * HEADS, Q_LEN, K_LEN)
    for h in range(2 * HEADS):
        for b, i, j in ((0, 1, 4), (1, 3, 2)):
            terms = xl_terms(q, K[b, h // 2, j], learned, b, h, i, j)
            assert result[b, h, i, j].item() == pytest.approx(sum(terms[1:]) / math.sqrt(HEAD_DIM))


def test_transformer_xl_shared_positions(learned):
    one_row = {"q_positions": Q_POSITIONS[:1], "k_positions": K_POSITIONS[:1]}
    every_row = {name: x.expand(BATCH, -1) for name, x in one_row.items()}
    torch.testing.assert_close(
        transformer_xl_scores(Q, K, **learned, **one_row),
        transformer_xl_scores(Q, K, **learned, **every_row),
    )


@pytest.mark.parametrize("name", ["w_r", "u", "v"])
def test_transformer_xl_refuses_parameters_of_other_heads(learned, name):
    tables = transformer_xl_tables(Q_POSITIONS[:, None], K_POSITIONS[:, None], ENCODING_DIM)
    one_head = {**learned, name: learned[name][:1]}  # would be spread over all heads
    with pytest.raises(ValueError, match=r"the queries' \(heads, head_dim\) = \(3, 6\)"):
        transformer_xl_bias(Q, K, **one_head, tables=tables)


def test_transformer_xl_errors(learned):
    tables = transformer_xl_tables(Q_POSITIONS[:, None], K_POSITIONS[:, None], ENCODING_DIM)
    with pytest.raises(ValueError, match="multiple of kv_heads, got 3 and 2"):
        transformer_xl_bias(Q, K[:, :2], **learned, tables=tables)
    with pytest.raises(ValueError, match="dim=9"):
        transformer_xl_tables(Q_POSITIONS, K_POSITIONS, 9)


@given(shift=st.integers(-100_000, 100_000))
def test_transformer_xl_sees_differences_alone(shift):
    q, k = make(BATCH, HEADS, Q_LEN, HEAD_DIM), make(BATCH, HEADS, K_LEN, HEAD_DIM, seed=2)
    learned = [make(HEADS, ENCODING_DIM, HEAD_DIM), make(HEADS, HEAD_DIM), make(HEADS, HEAD_DIM)]
    torch.testing.assert_close(
        transformer_xl_scores(q, k, *learned, Q_POSITIONS + shift, K_POSITIONS + shift),
        transformer_xl_scores(q, k, *learned, Q_POSITIONS, K_POSITIONS),
        rtol=0,
        atol=1e-8,
    )


def test_head_dims_must_agree(learned):
    narrow, message = K[..., :-1], r"same head_dim.* got q with 6, k with 5"
    with pytest.raises(ValueError, match=message):
        transformer_xl_scores(
            Q, narrow, **learned, q_positions=Q_POSITIONS, k_positions=K_POSITIONS
        )
    tables = transformer_xl_tables(Q_POSITIONS[:, None], K_POSITIONS[:, None], ENCODING_DIM)
    with pytest.raises(ValueError, match=message):
        transformer_xl_bias(Q, narrow, **learned, tables=tables)
