"""lib.tiled: equal to attention in any tiles, merges in any order, bytes counted one by one."""

import itertools

import pytest
import torch

import lib.tiled
from lib.attention import causal_mask, scaled_dot_product_attention
from lib.tiled import (
    SoftmaxState,
    attention_bytes,
    finish_state,
    merge_states,
    softmax_state,
    tiled_attention,
)

F64 = torch.float64
BATCH, HEADS, Q_LEN, K_LEN, HEAD_DIM, VALUE_DIM = 2, 3, 7, 11, 4, 5
TILES = [(1, 1), (2, 3), (3, 4), (7, 11), (64, 64), (1, 11), (7, 1)]
CLOSE = {"rtol": 0, "atol": 1e-13}


def make(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def inputs(lead=(BATCH, HEADS), spread=1.0):
    return (
        spread * make(*lead, Q_LEN, HEAD_DIM, seed=1),
        make(*lead, K_LEN, HEAD_DIM, seed=2),
        make(*lead, K_LEN, VALUE_DIM, seed=3),
    )


def random_mask(*lead):
    """One query that may see nothing; another that sees the last key alone."""
    mask = torch.rand(*lead, Q_LEN, K_LEN, generator=torch.Generator().manual_seed(4)) > 0.4
    mask[..., 2, :] = False
    mask[..., 4, :] = torch.arange(K_LEN) == K_LEN - 1
    return mask


MASKS = {
    "none": None,
    "causal": causal_mask(Q_LEN, K_LEN),
    "random": random_mask(BATCH, HEADS),
    "random, shared": random_mask(),
    "padding": (torch.arange(K_LEN) < 6)[None, None, None, :],
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("tiles", TILES, ids=str)
def test_tiles_make_no_difference(tiles, mask):
    query, key, value = inputs()
    bias = make(HEADS, 1, K_LEN, seed=5)
    for options in ({}, {"scale": 0.3}, {"bias": bias}):
        options = {"mask": MASKS[mask], **options}
        tiled = tiled_attention(query, key, value, q_tile=tiles[0], k_tile=tiles[1], **options)
        torch.testing.assert_close(
            tiled, scaled_dot_product_attention(query, key, value, **options), **CLOSE
        )


def test_scores_of_thousands_do_not_overflow():
    query, key, value = inputs(spread=3000.0)
    expected = scaled_dot_product_attention(query, key, value)
    result = tiled_attention(query, key, value, q_tile=2, k_tile=3)
    torch.testing.assert_close(result, expected, **CLOSE)
    scores = torch.tensor([[-2000.0, -2001.0]], dtype=F64)  # below what exp can hold
    state = merge_states(
        softmax_state(scores, value[0, 0, :2]), softmax_state(scores, -value[0, 0, :2])
    )
    torch.testing.assert_close(finish_state(state), torch.zeros(1, VALUE_DIM, dtype=F64))


def test_keys_and_values_may_lack_leading_dimensions():
    query, key, value = inputs()
    result = tiled_attention(query, key[0, 0], value[0], q_tile=3, k_tile=2)
    expected = scaled_dot_product_attention(query, key[0, 0], value[0])
    torch.testing.assert_close(result, expected, **CLOSE)


def test_a_bias_of_minus_infinity_hides_like_a_mask():
    query, key, value = inputs()
    mask = MASKS["random"]
    bias = torch.zeros(mask.shape, dtype=F64).masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(
        tiled_attention(query, key, value, bias=bias, q_tile=2, k_tile=3),
        tiled_attention(query, key, value, mask=mask, q_tile=2, k_tile=3),
    )


def test_any_order_of_merges_gives_the_same_state():
    scores = 5.0 * make(Q_LEN, K_LEN, seed=6)
    value = make(K_LEN, VALUE_DIM, seed=7)
    parts = [slice(0, 2), slice(2, 3), slice(3, 8), slice(8, 11)]
    states = [softmax_state(scores[:, part], value[part]) for part in parts]
    whole = softmax_state(scores, value)
    for order in itertools.permutations(states):
        first, second, third, fourth = order
        chain = merge_states(merge_states(merge_states(first, second), third), fourth)
        tree = merge_states(merge_states(first, second), merge_states(third, fourth))
        for state in (chain, tree):
            for ours, expected in zip(state, whole, strict=True):
                torch.testing.assert_close(ours, expected)


def test_merging_with_no_keys_changes_nothing():
    scores = make(Q_LEN, K_LEN, seed=6).masked_fill(random_mask().logical_not(), -torch.inf)
    state = softmax_state(scores, make(K_LEN, VALUE_DIM, seed=7))
    nothing = SoftmaxState(
        torch.full((Q_LEN, 1), -torch.inf, dtype=F64),
        torch.zeros(Q_LEN, 1, dtype=F64),
        torch.zeros(Q_LEN, VALUE_DIM, dtype=F64),
    )
    for merged in (merge_states(state, nothing), merge_states(nothing, state)):
        for ours, expected in zip(merged, state, strict=True):
            assert torch.equal(ours, expected)
    assert not finish_state(nothing).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(dtype):
    query, key, value = (x.to(dtype) for x in inputs())
    result = tiled_attention(query, key, value, q_tile=2, k_tile=1)
    wide = scaled_dot_product_attention(query.double(), key.double(), value.double())
    assert result.dtype == dtype
    assert (result.double() - wide).abs().max() < 2 * torch.finfo(dtype).eps


def test_gradients_flow_through_the_tiles():
    leaves = [x.requires_grad_() for x in inputs(lead=())]
    mask = causal_mask(Q_LEN, K_LEN)
    tiled = tiled_attention(*leaves, mask=mask, q_tile=2, k_tile=3)
    plain = scaled_dot_product_attention(*leaves, mask=mask)
    weight = make(Q_LEN, VALUE_DIM, seed=8)
    for ours, expected in zip(
        torch.autograd.grad((tiled * weight).sum(), leaves),
        torch.autograd.grad((plain * weight).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(ours, expected)


def test_no_tile_has_more_scores_than_asked_for_and_hidden_tiles_are_skipped(monkeypatch):
    shapes, original = [], softmax_state

    def watched(scores, value):
        shapes.append(tuple(scores.shape[-2:]))
        return original(scores, value)

    monkeypatch.setattr(lib.tiled, "softmax_state", watched)
    query, key, value = make(8, 4, seed=1), make(8, 4, seed=2), make(8, 4, seed=3)
    tiled_attention(query, key, value, q_tile=2, k_tile=2)
    assert shapes == [(2, 2)] * 16
    shapes.clear()
    tiled_attention(query, key, value, mask=causal_mask(8, 8), q_tile=2, k_tile=2)
    assert shapes == [(2, 2)] * 10  # on and below the diagonal of 4 times 4 tiles


@pytest.mark.parametrize("q_tile", [None, 1, 3, 7, 20])
def test_bytes_counted_one_by_one(q_tile):
    read = write = 0
    if q_tile is None:
        for _ in range(Q_LEN * K_LEN):
            write += 1  # a score
            read += 1  # for the softmax
            write += 1  # a weight
            read += 1  # for the sum of values
        read += Q_LEN * HEAD_DIM + K_LEN * HEAD_DIM + K_LEN * VALUE_DIM
        write += Q_LEN * VALUE_DIM
    else:
        for top in range(0, Q_LEN, q_tile):
            for _ in range(top, min(top + q_tile, Q_LEN)):
                read += HEAD_DIM  # the query
                write += VALUE_DIM  # its output
            for _ in range(K_LEN):
                read += HEAD_DIM + VALUE_DIM  # each key and value, once per tile of queries
    for dtype, size in ((torch.float32, 4), (torch.bfloat16, 2)):
        counted = attention_bytes(Q_LEN, K_LEN, HEAD_DIM, VALUE_DIM, q_tile=q_tile, dtype=dtype)
        assert counted == size * (read + write)


def test_values_are_as_wide_as_keys_when_no_width_is_given():
    assert attention_bytes(3, 4, 5) == attention_bytes(3, 4, 5, 5)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: tiled_attention(*inputs(), q_tile=0), "q_tile=0"),
        (lambda: tiled_attention(*inputs(), k_tile=-1), "k_tile=-1"),
        (lambda: tiled_attention(*inputs(), mask=torch.ones(Q_LEN, K_LEN)), "torch.bool"),
        (lambda: tiled_attention(*inputs(), bias=torch.ones(Q_LEN, 2)), "does not broadcast"),
        (lambda: tiled_attention(inputs()[1], inputs()[2], inputs()[2]), "head_dim 4"),
        (lambda: attention_bytes(0, 1, 1), "q_len=0"),
        (lambda: attention_bytes(1, 1, 1, q_tile=0), "q_tile=0"),
    ],
)
def test_bad_calls_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
