"""lib.relative: by hand, loops written from the papers' formulas, buckets at every boundary."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.relative import (
    deberta_scores,
    decompose_scores,
    relative_position_bucket,
    relative_positions,
    shaw_bias,
    shaw_scores,
    shaw_values,
    transformer_xl_bias,
    transformer_xl_scores,
    transformer_xl_tables,
    tupe_scores,
)

BATCH, HEADS, Q_LEN, K_LEN, HEAD_DIM, D_MODEL = 2, 3, 4, 5, 6, 7
ENCODING_DIM, VALUE_DIM = 10, 9
# Queries stand before, among and behind the keys, and no row is in order.
Q_POSITIONS = torch.tensor([[7, 0, 31, 2], [4, 4, 12, 90]])
K_POSITIONS = torch.tensor([[3, 7, 0, 40, 6], [11, 4, 5, 80, 0]])
EXACT = {"rtol": 0, "atol": 1e-12}


def make(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def dot(a, b):
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


def per_pair(score):
    """Call score(b, h, i, j) for every query and key: the expected scores, one at a time."""
    return torch.tensor(
        [
            [
                [[score(b, h, i, j) for j in range(K_LEN)] for i in range(Q_LEN)]
                for h in range(HEADS)
            ]
            for b in range(BATCH)
        ],
        dtype=torch.float64,
    )


def at(b, i, j):
    """The positions m of query i and n of key j."""
    return Q_POSITIONS[b, i].item(), K_POSITIONS[b, j].item()


@pytest.fixture
def offsets():
    return relative_positions(Q_POSITIONS, K_POSITIONS).unsqueeze(1)  # (batch, 1, q_len, k_len)


@pytest.fixture
def q():
    return make(BATCH, HEADS, Q_LEN, HEAD_DIM, seed=1)


@pytest.fixture
def k():
    return make(BATCH, HEADS, K_LEN, HEAD_DIM, seed=2)


# Differences


def test_relative_positions_are_key_minus_query():
    expected = [
        [[n - m for n in ns] for m in ms]
        for ms, ns in zip(Q_POSITIONS.tolist(), K_POSITIONS.tolist(), strict=True)
    ]
    for dtype in (torch.int32, torch.int64):
        result = relative_positions(Q_POSITIONS.to(dtype), K_POSITIONS.to(dtype))
        assert result.tolist() == expected
        assert result.dtype == torch.int64


# The four terms


def test_four_terms_by_hand():
    x, p = torch.tensor([[1.0], [2.0]]), torch.tensor([[10.0], [20.0]])
    terms = decompose_scores(x, p, torch.tensor([[3.0]]), torch.tensor([[5.0]]))
    assert terms.content_content.tolist() == [[15.0, 30.0], [30.0, 60.0]]
    assert terms.content_position.tolist() == [[150.0, 300.0], [300.0, 600.0]]
    assert terms.position_content.tolist() == [[150.0, 300.0], [300.0, 600.0]]
    assert terms.position_position.tolist() == [[1500.0, 3000.0], [3000.0, 6000.0]]


def test_four_terms_sum_to_the_score_and_are_told_apart():
    x, p = make(BATCH, K_LEN, D_MODEL), make(K_LEN, D_MODEL, seed=3)
    w_q, w_k = make(HEAD_DIM, D_MODEL, seed=4), make(HEAD_DIM, D_MODEL, seed=5)
    terms = decompose_scores(x, p, w_q, w_k)
    queries, keys = (x + p) @ w_q.T, (x + p) @ w_k.T
    torch.testing.assert_close(sum(terms), queries @ keys.mT)
    for b in range(BATCH):
        for m in range(K_LEN):
            for n in range(K_LEN):
                expected = [
                    dot(w_q @ asking, w_k @ asked)
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
    with pytest.raises(ValueError, match="relative_position must be"):
        relative_position_bucket(half, bidirectional=True)


def test_four_terms_errors():
    with pytest.raises(ValueError, match=r"p \(4, 6\).*share their last dimension"):
        decompose_scores(make(4, 7), make(4, 6), make(3, 7), make(3, 7))
    with pytest.raises(ValueError, match=r"w_q \(3, 7\) and w_k \(2, 7\) must be"):
        decompose_scores(make(4, 7), make(4, 7), make(3, 7), make(2, 7))


# Shaw


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
def test_shaw_loop(q, k, offsets, limit):
    table = make(2 * limit + 1, HEAD_DIM, seed=6)

    def score(b, h, i, j):
        m, n = at(b, i, j)
        key = k[b, h, j] + table[clip(n - m, limit) + limit]
        return dot(q[b, h, i], key) / math.sqrt(HEAD_DIM)

    torch.testing.assert_close(shaw_scores(q, k, table, offsets), per_pair(score), **EXACT)


def test_shaw_values_loop(offsets):
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
    torch.testing.assert_close(shaw_values(weights, value, table, offsets), expected, **EXACT)


def test_shaw_errors(q, k, offsets):
    with pytest.raises(ValueError, match=r"\(4, 6\), needs \(2 \* max_distance \+ 1, 6\)"):
        shaw_scores(q, k, make(4, HEAD_DIM), offsets)
    with pytest.raises(ValueError, match=r"\(5, 7\), needs .*, 6\)"):
        shaw_bias(q, make(5, 7), offsets)
    with pytest.raises(ValueError, match=r"\(3, 5, 6\), needs .*, 6\)"):
        shaw_bias(q, make(3, 5, HEAD_DIM), offsets)
    weights, value = make(BATCH, 1, Q_LEN, K_LEN), make(BATCH, 1, K_LEN, VALUE_DIM)
    with pytest.raises(ValueError, match=r"\(5, 6\), needs .*, 9\)"):
        shaw_values(weights, value, make(5, 6), offsets)


# Transformer-XL


def encoding(position):
    angles = [position / 10000 ** (2 * i / ENCODING_DIM) for i in range(ENCODING_DIM // 2)]
    return [f(angle) for angle in angles for f in (math.sin, math.cos)]


@pytest.fixture
def learned():
    return {
        "w_r": make(HEADS, HEAD_DIM, ENCODING_DIM, seed=8),
        "u": make(HEADS, HEAD_DIM, seed=9),
        "v": make(HEADS, HEAD_DIM, seed=10),
    }


def xl_terms(q, key, learned, b, h, i, j):
    """Terms (a), (b), (c), (d) of the paper, from m − n, unscaled."""
    m, n = at(b, i, j)
    projected = learned["w_r"][h] @ torch.tensor(encoding(m - n), dtype=torch.float64)
    u, v = learned["u"][h], learned["v"][h]
    return dot(q[b, h, i], key), dot(q[b, h, i], projected), dot(u, key), dot(v, projected)


def test_transformer_xl_loop(q, k, learned):
    def score(b, h, i, j):
        return sum(xl_terms(q, k[b, h, j], learned, b, h, i, j)) / math.sqrt(HEAD_DIM)

    result = transformer_xl_scores(
        q, k, **learned, q_positions=Q_POSITIONS, k_positions=K_POSITIONS
    )
    torch.testing.assert_close(result, per_pair(score), **EXACT)


def test_transformer_xl_grouped_queries(q, k, learned):
    q, learned = (
        q.repeat(1, 2, 1, 1),
        {name: x.repeat(2, *[1] * (x.dim() - 1)) for name, x in learned.items()},
    )
    q, learned["u"] = make(*q.shape, seed=11), make(*learned["u"].shape, seed=12)
    tables = transformer_xl_tables(
        Q_POSITIONS[:, None], K_POSITIONS[:, None], ENCODING_DIM, dtype=torch.float64
    )
    result = transformer_xl_bias(q, k, **learned, tables=tables)
    assert result.shape == (BATCH, 2 * HEADS, Q_LEN, K_LEN)
    for h in range(2 * HEADS):
        for b, i, j in ((0, 1, 4), (1, 3, 2)):
            terms = xl_terms(q, k[b, h // 2, j], learned, b, h, i, j)
            assert result[b, h, i, j].item() == pytest.approx(sum(terms[1:]) / math.sqrt(HEAD_DIM))


def test_transformer_xl_shared_positions(q, k, learned):
    one_row = {"q_positions": Q_POSITIONS[:1], "k_positions": K_POSITIONS[:1]}
    every_row = {name: x.expand(BATCH, -1) for name, x in one_row.items()}
    torch.testing.assert_close(
        transformer_xl_scores(q, k, **learned, **one_row),
        transformer_xl_scores(q, k, **learned, **every_row),
    )


@pytest.mark.parametrize("name", ["w_r", "u", "v"])
def test_transformer_xl_refuses_parameters_of_other_heads(q, k, learned, name):
    tables = transformer_xl_tables(Q_POSITIONS[:, None], K_POSITIONS[:, None], ENCODING_DIM)
    one_head = {**learned, name: learned[name][:1]}  # would be spread over all heads
    with pytest.raises(ValueError, match=r"the queries' \(heads, head_dim\) = \(3, 6\)"):
        transformer_xl_bias(q, k, **one_head, tables=tables)


def test_transformer_xl_errors(q, k, learned):
    tables = transformer_xl_tables(Q_POSITIONS[:, None], K_POSITIONS[:, None], ENCODING_DIM)
    with pytest.raises(ValueError, match="multiple of kv_heads, got 3 and 2"):
        transformer_xl_bias(q, k[:, :2], **learned, tables=tables)
    with pytest.raises(ValueError, match="dim=9"):
        transformer_xl_tables(Q_POSITIONS, K_POSITIONS, 9)


@given(shift=st.integers(-100_000, 100_000))
def test_transformer_xl_sees_differences_alone(shift):
    q, k = make(BATCH, HEADS, Q_LEN, HEAD_DIM), make(BATCH, HEADS, K_LEN, HEAD_DIM, seed=2)
    learned = [make(HEADS, HEAD_DIM, ENCODING_DIM), make(HEADS, HEAD_DIM), make(HEADS, HEAD_DIM)]
    torch.testing.assert_close(
        transformer_xl_scores(q, k, *learned, Q_POSITIONS + shift, K_POSITIONS + shift),
        transformer_xl_scores(q, k, *learned, Q_POSITIONS, K_POSITIONS),
        rtol=0,
        atol=1e-8,
    )


# T5's buckets


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


# DeBERTa and TUPE


@pytest.mark.parametrize("limit", [1, 4, 60])
def test_deberta_loop(q, k, offsets, limit):
    position_q, position_k = (make(HEADS, 2 * limit, HEAD_DIM, seed=seed) for seed in (13, 14))

    def delta(i, j):  # equation (3) of the paper
        if i - j <= -limit:
            return 0
        if i - j >= limit:
            return 2 * limit - 1
        return i - j + limit

    def score(b, h, i, j):
        m, n = at(b, i, j)
        query, key = q[b, h, i], k[b, h, j]
        to_position = dot(query, position_k[h, delta(m, n)])
        from_position = dot(key, position_q[h, delta(n, m)])
        return (dot(query, key) + to_position + from_position) / math.sqrt(3 * HEAD_DIM)

    result = deberta_scores(q, k, position_q, position_k, offsets)
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


def test_deberta_errors(q, k, offsets):
    with pytest.raises(ValueError, match=r"even number of rows, got \(5, 6\) and \(5, 6\)"):
        deberta_scores(q, k, make(5, HEAD_DIM), make(5, HEAD_DIM), offsets)
    with pytest.raises(ValueError, match=r"got \(4, 6\) and \(8, 6\)"):
        deberta_scores(q, k, make(4, HEAD_DIM), make(8, HEAD_DIM), offsets)


def test_head_dims_must_agree(q, k, offsets, learned):
    narrow, table = k[..., :-1], make(8, HEAD_DIM)
    message = "same head_dim.* got q with 6, k with 5"
    with pytest.raises(ValueError, match=message):
        shaw_scores(q, narrow, make(5, HEAD_DIM), offsets)
    with pytest.raises(ValueError, match=message):
        transformer_xl_scores(
            q, narrow, **learned, q_positions=Q_POSITIONS, k_positions=K_POSITIONS
        )
    tables = transformer_xl_tables(Q_POSITIONS[:, None], K_POSITIONS[:, None], ENCODING_DIM)
    with pytest.raises(ValueError, match=message):
        transformer_xl_bias(q, narrow, **learned, tables=tables)
    with pytest.raises(ValueError, match=message):
        deberta_scores(q, narrow, table, table, offsets)
    # These would be added without complaint, but scaled by another width than their own.
    position_q, position_k = make(Q_LEN, 7), make(K_LEN, 7)
    with pytest.raises(ValueError, match="position_q with 7, position_k with 7"):
        tupe_scores(q, k, position_q, position_k)


def test_tupe_loop(q, k):
    position_q = make(HEADS, Q_LEN, HEAD_DIM, seed=16)
    position_k = make(HEADS, K_LEN, HEAD_DIM, seed=17)
    bias = make(HEADS, Q_LEN, K_LEN, seed=18)

    def absolute(b, h, i, j):
        content = dot(q[b, h, i], k[b, h, j]) / math.sqrt(2 * HEAD_DIM)
        return content + dot(position_q[h, i], position_k[h, j]) / math.sqrt(2 * HEAD_DIM)

    def relative(b, h, i, j):
        return absolute(b, h, i, j) + bias[h, i, j].item()

    result = tupe_scores(q, k, position_q, position_k)
    torch.testing.assert_close(result, per_pair(absolute), **EXACT)
    result = tupe_scores(q, k, position_q, position_k, bias=bias)
    torch.testing.assert_close(result, per_pair(relative), **EXACT)


# What all of them share


def scores_of(scheme, q, k, q_positions, k_positions):
    offsets = relative_positions(q_positions, k_positions).unsqueeze(1)
    dtype, device = q.dtype, q.device

    def learned(*shape):
        return make(*shape, seed=19).to(device, dtype)

    if scheme == "shaw":
        return shaw_scores(q, k, learned(9, HEAD_DIM), offsets)
    if scheme == "deberta":
        tables = learned(2, 8, HEAD_DIM)
        return deberta_scores(q, k, tables[0], tables[1], offsets)
    vectors = (learned(HEADS, HEAD_DIM, ENCODING_DIM), *learned(2, HEADS, HEAD_DIM))
    return transformer_xl_scores(q, k, *vectors, q_positions, k_positions)


SCHEMES = ["shaw", "deberta", "transformer-xl"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_order_matters(scheme, q, k):
    here = scores_of(scheme, q, k, Q_POSITIONS, K_POSITIONS)
    swapped = scores_of(scheme, q, k, Q_POSITIONS, K_POSITIONS.flip(-1))
    mirrored = scores_of(scheme, q, k, -Q_POSITIONS, -K_POSITIONS)
    assert not torch.allclose(here, swapped)
    assert not torch.allclose(here, mirrored)  # the direction is seen, not only the distance


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.15)])
def test_dtypes(scheme, q, k, dtype, tolerance):
    exact = scores_of(scheme, q, k, Q_POSITIONS, K_POSITIONS)
    result = scores_of(scheme, q.to(dtype), k.to(dtype), Q_POSITIONS, K_POSITIONS)
    assert result.dtype == dtype
    torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_scores_on_a_gpu(scheme, q, k):
    on_cpu = scores_of(scheme, q, k, Q_POSITIONS, K_POSITIONS)
    on_gpu = scores_of(scheme, *(x.cuda() for x in (q, k, Q_POSITIONS, K_POSITIONS)))
    torch.testing.assert_close(on_gpu.cpu(), on_cpu)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_buckets_on_a_gpu():
    offsets = torch.arange(-1000, 1001)
    on_gpu = relative_position_bucket(offsets.cuda(), bidirectional=True)
    assert torch.equal(on_gpu.cpu(), relative_position_bucket(offsets, bidirectional=True))
