"""lib.relative: by hand, loops written from the papers' formulas, against transformers, errors."""

import math

import pytest
import torch

from lib.relative import deberta_scores, decompose_scores, relative_positions, tupe_scores
from lib.shaw import shaw_scores
from lib.transformer_xl import transformer_xl_scores
from tests.scores import (
    BATCH,
    D_MODEL,
    ENCODING_DIM,
    EXACT,
    HEAD_DIM,
    HEADS,
    K_LEN,
    K_POSITIONS,
    OFFSETS,
    Q_LEN,
    Q_POSITIONS,
    K,
    Q,
    at,
    dot,
    make,
    per_pair,
)


def test_relative_positions_are_key_minus_query():
    expected = [
        [[n - m for n in ns] for m in ms]
        for ms, ns in zip(Q_POSITIONS.tolist(), K_POSITIONS.tolist(), strict=True)
    ]
    for dtype in (torch.int32, torch.int64):
        result = relative_positions(Q_POSITIONS.to(dtype), K_POSITIONS.to(dtype))
        assert result.tolist() == expected
        assert result.dtype == torch.int64


def test_four_terms_by_hand():
    x, p = torch.tensor([[1.0], [2.0]]), torch.tensor([[10.0], [20.0]])
    terms = decompose_scores(x, p, torch.tensor([[3.0]]), torch.tensor([[5.0]]))
    assert terms.content_content.tolist() == [[15.0, 30.0], [30.0, 60.0]]
    assert terms.content_position.tolist() == [[150.0, 300.0], [300.0, 600.0]]
    assert terms.position_content.tolist() == [[150.0, 300.0], [300.0, 600.0]]
    assert terms.position_position.tolist() == [[1500.0, 3000.0], [3000.0, 6000.0]]


def test_four_terms_sum_to_the_score_and_are_told_apart():
    x, p = make(BATCH, K_LEN, D_MODEL), make(K_LEN, D_MODEL, seed=3)
    w_q, w_k = make(D_MODEL, HEAD_DIM, seed=4), make(D_MODEL, HEAD_DIM, seed=5)
    terms = decompose_scores(x, p, w_q, w_k)
    queries, keys = (x + p) @ w_q, (x + p) @ w_k
    torch.testing.assert_close(sum(terms), queries @ keys.mT)
    for b in range(BATCH):
        for m in range(K_LEN):
            for n in range(K_LEN):
                expected = [
                    dot(asking @ w_q, asked @ w_k)
                    for asking in (x[b, m], p[m])
                    for asked in (x[b, n], p[n])
                ]
                assert [term[b, m, n].item() for term in terms] == pytest.approx(expected)


def test_positions_must_be_integers():
    whole, half = torch.tensor([3]), torch.tensor([2.5])
    with pytest.raises(ValueError, match=r"k_positions must be int32 or int64, got torch\.float32"):
        relative_positions(whole, half)  # would be cut to 2
    with pytest.raises(ValueError, match="q_positions must be"):
        relative_positions(half, whole)


def test_four_terms_errors():
    with pytest.raises(ValueError, match=r"p \(4, 6\).*must be the same, d_model"):
        decompose_scores(make(4, 7), make(4, 6), make(7, 3), make(7, 3))
    with pytest.raises(ValueError, match=r"w_q \(7, 3\) and w_k \(7, 2\) must be"):
        decompose_scores(make(4, 7), make(4, 7), make(7, 3), make(7, 2))


@pytest.mark.parametrize("limit", [1, 4, 60])
def test_deberta_loop(limit):
    position_q, position_k = (make(HEADS, 2 * limit, HEAD_DIM, seed=seed) for seed in (13, 14))

    def delta(i, j):  # equation (3) of the paper
        if i - j <= -limit:
            return 0
        if i - j >= limit:
            return 2 * limit - 1
        return i - j + limit

    def score(b, h, i, j):
        m, n = at(b, i, j)
        query, key = Q[b, h, i], K[b, h, j]
        to_position = dot(query, position_k[h, delta(m, n)])
        from_position = dot(key, position_q[h, delta(n, m)])
        return (dot(query, key) + to_position + from_position) / math.sqrt(3 * HEAD_DIM)

    result = deberta_scores(Q, K, position_q, position_k, OFFSETS)
    torch.testing.assert_close(result, per_pair(score), **EXACT)


def test_deberta_is_transformers():
    from transformers import DebertaConfig
    from transformers.models.deberta.modeling_deberta import DisentangledSelfAttention

    length, width = 6, HEADS * HEAD_DIM
    limit = length  # no offset is clipped
    config = DebertaConfig(
        hidden_size=width,
        num_attention_heads=HEADS,
        relative_attention=True,
        max_relative_positions=limit,
        pos_att_type=["c2p", "p2c"],
    )
    attention = DisentangledSelfAttention(config).double().eval()
    with torch.no_grad():
        attention.q_bias.normal_()
        attention.v_bias.normal_()
        x, relative = make(BATCH, length, width), make(2 * limit, width, seed=15)
        mask = torch.ones(BATCH, 1, length, length, dtype=torch.bool)
        positions = torch.arange(length)
        m_minus_n = positions[:, None] - positions
        _, expected = attention(
            x, mask, output_attentions=True, relative_pos=m_minus_n, rel_embeddings=relative
        )

        def split(tensor):
            return tensor.unflatten(-1, (HEADS, HEAD_DIM)).transpose(-3, -2)

        # Its one projection holds query, key and value of head 0, then of head 1, …
        q, k, _ = (
            attention.in_proj(x)
            .unflatten(-1, (HEADS, 3 * HEAD_DIM))
            .mT.mT.transpose(1, 2)
            .chunk(3, dim=-1)
        )
        q = q + split(attention.q_bias[None])
        scores = deberta_scores(
            q,
            k,
            # Its last term has m − n where the paper has n − m: row r becomes row −r.
            split(attention.pos_q_proj(relative)).flip(1).roll(1, dims=1),
            split(attention.pos_proj(relative)),
            -m_minus_n,
        )
    torch.testing.assert_close(scores.softmax(-1), expected, rtol=0, atol=1e-7)


def test_deberta_errors():
    with pytest.raises(ValueError, match=r"even number of rows, got \(5, 6\) and \(5, 6\)"):
        deberta_scores(Q, K, make(5, HEAD_DIM), make(5, HEAD_DIM), OFFSETS)
    with pytest.raises(ValueError, match=r"got \(4, 6\) and \(8, 6\)"):
        deberta_scores(Q, K, make(4, HEAD_DIM), make(8, HEAD_DIM), OFFSETS)


def test_head_dims_must_agree():
    table = make(8, HEAD_DIM)
    with pytest.raises(ValueError, match=r"same head_dim.* got q with 6, k with 5"):
        deberta_scores(Q, K[..., :-1], table, table, OFFSETS)
    # These would be added without complaint, but scaled by another width than their own.
    position_q, position_k = make(Q_LEN, 7), make(K_LEN, 7)
    with pytest.raises(ValueError, match="position_q with 7, position_k with 7"):
        tupe_scores(Q, K, position_q, position_k)


def test_tupe_loop():
    position_q = make(HEADS, Q_LEN, HEAD_DIM, seed=16)
    position_k = make(HEADS, K_LEN, HEAD_DIM, seed=17)
    bias = make(HEADS, Q_LEN, K_LEN, seed=18)

    def absolute(b, h, i, j):
        content = dot(Q[b, h, i], K[b, h, j]) / math.sqrt(2 * HEAD_DIM)
        return content + dot(position_q[h, i], position_k[h, j]) / math.sqrt(2 * HEAD_DIM)

    def relative(b, h, i, j):
        return absolute(b, h, i, j) + bias[h, i, j].item()

    result = tupe_scores(Q, K, position_q, position_k)
    torch.testing.assert_close(result, per_pair(absolute), **EXACT)
    result = tupe_scores(Q, K, position_q, position_k, bias=bias)
    torch.testing.assert_close(result, per_pair(relative), **EXACT)


# --- what the scores of every relative scheme must do


def deberta(q, k, q_positions, k_positions):
    offsets = relative_positions(q_positions, k_positions).unsqueeze(1)
    tables = make(2, 8, HEAD_DIM, seed=19).to(q)
    return deberta_scores(q, k, tables[0], tables[1], offsets)


def shaw(q, k, q_positions, k_positions):
    offsets = relative_positions(q_positions, k_positions).unsqueeze(1)
    return shaw_scores(q, k, make(9, HEAD_DIM, seed=19).to(q), offsets)


def transformer_xl(q, k, q_positions, k_positions):
    w_r = make(HEADS, ENCODING_DIM, HEAD_DIM, seed=19).to(q)
    u, v = make(2, HEADS, HEAD_DIM, seed=19).to(q)
    return transformer_xl_scores(q, k, w_r, u, v, q_positions, k_positions)


every_scheme = pytest.mark.parametrize("scores_of", [deberta, shaw, transformer_xl])


@every_scheme
def test_order_matters(scores_of):
    here = scores_of(Q, K, Q_POSITIONS, K_POSITIONS)
    swapped = scores_of(Q, K, Q_POSITIONS, K_POSITIONS.flip(-1))
    mirrored = scores_of(Q, K, -Q_POSITIONS, -K_POSITIONS)
    assert not torch.allclose(here, swapped)
    assert not torch.allclose(here, mirrored)  # the direction is seen, not only the distance


@every_scheme
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.15)])
def test_dtypes(scores_of, dtype, tolerance):
    exact = scores_of(Q, K, Q_POSITIONS, K_POSITIONS)
    result = scores_of(Q.to(dtype), K.to(dtype), Q_POSITIONS, K_POSITIONS)
    assert result.dtype == dtype
    torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@every_scheme
def test_scores_on_a_gpu(scores_of):
    on_cpu = scores_of(Q, K, Q_POSITIONS, K_POSITIONS)
    on_gpu = scores_of(*(x.cuda() for x in (Q, K, Q_POSITIONS, K_POSITIONS)))
    torch.testing.assert_close(on_gpu.cpu(), on_cpu)
