"""Tests of :mod:`lib.attention`: by hand, against torch and a loop, properties, errors, dtypes."""

import itertools
import math

import pytest
import torch
from torch.nn import functional as F

from lib.attention import (
    LayerState,
    MultiHeadAttention,
    causal_mask,
    grouped_query_attention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from lib.kv_cache import KVCache
from lib.position import Position

F64 = torch.float64
# No two sizes are equal, so that a mixed-up dimension shows.
BATCH, HEADS, Q_LEN, K_LEN, HEAD_DIM, VALUE_DIM = 2, 3, 4, 7, 6, 5


def make(*shape, dtype=F64, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64).to(dtype)


def make_qkv(dtype=F64, lead=(BATCH, HEADS), value_dim=VALUE_DIM):
    return (
        make(*lead, Q_LEN, HEAD_DIM, dtype=dtype, seed=1),
        make(*lead, K_LEN, HEAD_DIM, dtype=dtype, seed=2),
        make(*lead, K_LEN, value_dim, dtype=dtype, seed=3),
    )


def make_mask(*lead):
    """A mask with one row that may see nothing, one that sees everything, the rest at random."""
    generator = torch.Generator().manual_seed(4)
    mask = torch.rand((*lead, Q_LEN, K_LEN), generator=generator) > 0.4
    mask[..., 0, :] = True
    mask[..., 2, :] = False
    return mask


def loop(query, key, value, mask=None, bias=None, scale=None):
    """The definition, one number at a time, in float64."""
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    q_len, k_len = query.shape[-2], key.shape[-2]
    query, key, value = (x.double().expand(*lead, *x.shape[-2:]) for x in (query, key, value))
    allowed = torch.ones((), dtype=torch.bool) if mask is None else mask
    allowed = allowed.expand(*lead, q_len, k_len)
    bias = (torch.zeros(()) if bias is None else bias).double().expand(*lead, q_len, k_len)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    output = torch.zeros(*lead, q_len, value.shape[-1], dtype=F64)
    weights = torch.zeros(*lead, q_len, k_len, dtype=F64)
    for where in itertools.product(*(range(n) for n in lead)):
        for m in range(q_len):
            seen = [n for n in range(k_len) if allowed[where][m, n]]
            scores = {
                n: scale * math.fsum((query[where][m] * key[where][n]).tolist())
                + float(bias[where][m, n])
                for n in seen
            }
            total = math.fsum(math.exp(score) for score in scores.values())
            for n in seen:
                weights[where][m, n] = math.exp(scores[n]) / total
                output[where][m] += weights[where][m, n] * value[where][n]
    return output, weights


# --- by hand


def test_weights_and_output_by_hand():
    query = torch.tensor([[math.log(3.0)]], dtype=F64)  # scores log 3 and 0: weights 3/4 and 1/4
    key = torch.tensor([[1.0], [0.0]], dtype=F64)
    value = torch.tensor([[4.0, 0.0], [8.0, 40.0]], dtype=F64)
    output, weights = scaled_dot_product_attention(query, key, value, return_weights=True)
    torch.testing.assert_close(weights, torch.tensor([[0.75, 0.25]], dtype=F64))
    torch.testing.assert_close(output, torch.tensor([[5.0, 10.0]], dtype=F64))


@pytest.mark.parametrize("return_weights", [False, True])
def test_bias_is_added_after_the_scale(return_weights):
    # query . key = 0, so the bias alone decides: weights 3/4 and 1/4 whatever the scale
    query, key = torch.zeros(1, 4, dtype=F64), torch.ones(2, 4, dtype=F64)
    value = torch.tensor([[4.0], [8.0]], dtype=F64)
    bias = torch.tensor([[math.log(3.0), 0.0]], dtype=F64)
    result = scaled_dot_product_attention(
        query, key, value, bias=bias, scale=7.0, return_weights=return_weights
    )
    output = result[0] if return_weights else result
    torch.testing.assert_close(output, torch.tensor([[5.0]], dtype=F64))


def test_causal_mask_with_offset_zero_is_torchs_is_causal():
    query, key, value = make_qkv()
    expected = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    actual = scaled_dot_product_attention(
        query, key, value, mask=causal_mask(Q_LEN, K_LEN, offset=0)
    )
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def test_split_heads_keeps_tokens_apart():
    # entry = 100 * token + column
    x = 100 * torch.arange(3).unsqueeze(-1) + torch.arange(8)
    heads = split_heads(x, 2)
    assert heads.shape == (2, 3, 4)
    assert heads[1].tolist() == [[4, 5, 6, 7], [104, 105, 106, 107], [204, 205, 206, 207]]
    assert heads.data_ptr() == x.data_ptr()  # a view
    assert torch.equal(merge_heads(heads), x)


# --- against independent implementations


LEADS = [(), (BATCH,), (BATCH, HEADS), (2, 1, HEADS)]


@pytest.mark.parametrize("lead", LEADS, ids=str)
@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_both_paths_match_the_loop(lead, with_mask, with_bias, scale):
    query, key, value = make_qkv(lead=lead)
    mask = make_mask(*lead) if with_mask else None
    bias = make(*lead, Q_LEN, K_LEN, seed=5) if with_bias else None
    expected, expected_weights = loop(query, key, value, mask, bias, scale)
    kwargs = {"mask": mask, "bias": bias, "scale": scale}
    fused = scaled_dot_product_attention(query, key, value, **kwargs)
    output, weights = scaled_dot_product_attention(query, key, value, **kwargs, return_weights=True)
    torch.testing.assert_close(fused, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(output, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(weights, expected_weights, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize(
    ("query_lead", "key_lead", "mask_lead"),
    [
        ((BATCH, HEADS), (BATCH, 1), (BATCH, 1)),
        ((BATCH, HEADS), (1, HEADS), (HEADS,)),
        ((1, HEADS), (BATCH, HEADS), ()),
        ((HEADS,), (BATCH, 1), (1, HEADS)),
        ((), (BATCH, HEADS), (1, 1)),
        ((4, 1, HEADS), (BATCH, 1), (4, 1, 1)),
        ((4, 1, HEADS), (1, BATCH, 1), (BATCH, 1)),
    ],
    ids=str,
)
def test_leading_dimensions_broadcast(query_lead, key_lead, mask_lead, return_weights):
    query = make(*query_lead, Q_LEN, HEAD_DIM, seed=1)
    key = make(*key_lead, K_LEN, HEAD_DIM, seed=2)
    value = make(*key_lead, K_LEN, VALUE_DIM, seed=3)
    mask = make_mask(*mask_lead)
    bias = make(*mask_lead, 1, K_LEN, seed=5)
    expected, expected_weights = loop(query, key, value, mask, bias)
    result = scaled_dot_product_attention(
        query, key, value, mask=mask, bias=bias, return_weights=return_weights
    )
    if return_weights:
        torch.testing.assert_close(result[1], expected_weights, rtol=1e-12, atol=1e-12)
        result = result[0]
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(K_LEN,), (1, K_LEN), (Q_LEN, 1), (1, 1), ()], ids=str)
def test_a_small_mask_or_bias_broadcasts_on_both_paths(shape):
    query, key, value = make_qkv()
    mask, bias = make(*shape, seed=6) > -0.5, make(*shape, seed=5)
    expected, _ = loop(query, key, value, mask, bias)
    fused = scaled_dot_product_attention(query, key, value, mask=mask, bias=bias)
    output, _ = scaled_dot_product_attention(
        query, key, value, mask=mask, bias=bias, return_weights=True
    )
    torch.testing.assert_close(fused, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(output, expected, rtol=1e-12, atol=1e-12)


# --- properties


@pytest.mark.parametrize("dtype", [F64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("value_dim", [HEAD_DIM, VALUE_DIM])
@pytest.mark.parametrize("by", ["mask", "mask and bias", "bias"])
@pytest.mark.parametrize("return_weights", [False, True])
def test_a_query_that_may_see_nothing_gives_zero_and_no_nan(dtype, value_dim, by, return_weights):
    query, key, value = (x.requires_grad_() for x in make_qkv(dtype, value_dim=value_dim))
    mask = make_mask(BATCH, 1)
    bias = torch.zeros(1, HEADS, Q_LEN, K_LEN, dtype=dtype)
    kwargs = {
        "mask": {"mask": mask},
        "mask and bias": {"mask": mask, "bias": bias},
        "bias": {"bias": bias.masked_fill(~mask, -torch.inf)},
    }[by]
    result = scaled_dot_product_attention(
        query, key, value, **kwargs, return_weights=return_weights
    )
    output = result[0] if return_weights else result
    assert (output[:, :, 2] == 0).all()
    assert (output[:, :, 1] != 0).any()
    if return_weights:
        assert (result[1][:, :, 2] == 0).all()
    output.float().square().sum().backward()
    for tensor in (query, key, value):
        assert tensor.grad.isfinite().all()
    assert (query.grad[:, :, 2] == 0).all()


@pytest.mark.parametrize("return_weights", [False, True])
def test_a_hidden_value_has_no_influence_while_it_is_finite(return_weights):
    query, key, value = make_qkv()
    mask = torch.arange(K_LEN) > 0  # the first key is hidden from every query

    def attend(hidden):
        changed = torch.cat([torch.full_like(value[..., :1, :], hidden), value[..., 1:, :]], dim=-2)
        result = scaled_dot_product_attention(
            query, key, changed, mask=mask, return_weights=return_weights
        )
        return result[0] if return_weights else result

    torch.testing.assert_close(attend(1e9), attend(0.0), rtol=1e-12, atol=0)
    for hidden in (torch.nan, torch.inf):
        assert attend(hidden).isnan().all()  # 0 · NaN and 0 · inf are NaN, as documented


@pytest.mark.parametrize("return_weights", [False, True])
def test_gradients(return_weights):
    query, key, value = (x.requires_grad_() for x in make_qkv())
    bias = make(HEADS, Q_LEN, K_LEN, seed=5).requires_grad_()
    mask = make_mask(BATCH, 1)

    def run(query, key, value, bias):
        return scaled_dot_product_attention(
            query, key, value, mask=mask, bias=bias, return_weights=return_weights
        )

    torch.autograd.gradcheck(run, (query, key, value, bias))


def test_weights_sum_to_one_and_a_masked_key_is_never_used():
    query, key, value = make_qkv()
    mask = causal_mask(Q_LEN, K_LEN)
    output, weights = scaled_dot_product_attention(
        query, key, value, mask=mask, return_weights=True
    )
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, Q_LEN, dtype=F64))
    key, value = key.clone(), value.clone()
    key[..., -1, :], value[..., -1, :] = 1e3, -1e3  # only the last query may see the last key
    changed = scaled_dot_product_attention(query, key, value, mask=mask)
    torch.testing.assert_close(changed[..., :-1, :], output[..., :-1, :])
    assert not torch.allclose(changed[..., -1, :], output[..., -1, :])


def test_large_scores_do_not_overflow():
    query, key, value = make_qkv(torch.float32)
    output, weights = scaled_dot_product_attention(
        1e4 * query, 1e4 * key, value, return_weights=True
    )
    assert output.isfinite().all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, Q_LEN))


def test_inputs_are_left_alone():
    tensors = (*make_qkv(), make_mask(BATCH, 1), make(HEADS, Q_LEN, K_LEN))
    before = [x.clone() for x in tensors]
    for return_weights in (False, True):
        scaled_dot_product_attention(
            *tensors[:3], mask=tensors[3], bias=tensors[4], return_weights=return_weights
        )
    assert all(torch.equal(x, y) for x, y in zip(tensors, before, strict=True))


class Recorder:
    """Stands in for torch's kernel and keeps what it was called with."""

    def __init__(self, monkeypatch):
        self.call, self.kernel = None, F.scaled_dot_product_attention
        monkeypatch.setattr("lib.attention.F.scaled_dot_product_attention", self)

    def __call__(self, query, key, value, attn_mask=None, **kwargs):
        self.call = (query, key, value, attn_mask)
        self.is_causal = kwargs.get("is_causal", False)
        return self.kernel(query, key, value, attn_mask=attn_mask, **kwargs)


@pytest.mark.parametrize("mask_lead", [(), (1,)], ids=str)
@pytest.mark.parametrize("lead", [(), (BATCH,), (BATCH, HEADS)], ids=str)
def test_the_kernel_gets_four_dimensions_and_no_copies(lead, mask_lead, monkeypatch):
    """Other numbers reach torch's slow path (two are well for a mask); expanding it costs time."""
    kernel = Recorder(monkeypatch)
    query, key, value = make_qkv(torch.float32, lead=lead)
    mask = make_mask(*(mask_lead if lead else ()))
    scaled_dot_product_attention(query, key, value, mask=mask)
    assert [x.dim() for x in kernel.call[:3]] == [4, 4, 4]
    for given, passed in zip((query, key, value, mask), kernel.call, strict=True):
        assert passed.data_ptr() == given.data_ptr()
    assert kernel.call[3].shape in ((Q_LEN, K_LEN), (1, 1, Q_LEN, K_LEN))


# --- grouped queries


@pytest.mark.parametrize("n_kv_heads", [1, 2, 6])
@pytest.mark.parametrize(
    ("mask_lead", "bias_lead"),
    [(None, None), ((), None), ((BATCH, 1), (1, 6)), ((BATCH, 6), (6,)), (None, ()), ((1,), (1,))],
    ids=str,
)
@pytest.mark.parametrize("rows", [1, Q_LEN])
def test_grouped_queries_equal_repeated_keys(n_kv_heads, mask_lead, bias_lead, rows):
    query = make(BATCH, 6, Q_LEN, HEAD_DIM, seed=1)
    key = make(BATCH, n_kv_heads, K_LEN, HEAD_DIM, seed=2)
    value = make(BATCH, n_kv_heads, K_LEN, VALUE_DIM, seed=3)
    mask = None if mask_lead is None else make_mask(*mask_lead)[..., -rows:, :]
    bias = None if bias_lead is None else make(*bias_lead, rows, K_LEN, seed=5)
    repeat = 6 // n_kv_heads
    expected, expected_weights = scaled_dot_product_attention(
        query,
        key.repeat_interleave(repeat, dim=1),
        value.repeat_interleave(repeat, dim=1),
        mask=mask,
        bias=bias,
        return_weights=True,
    )
    fused = grouped_query_attention(query, key, value, mask=mask, bias=bias)
    output, weights = grouped_query_attention(
        query, key, value, mask=mask, bias=bias, return_weights=True
    )
    torch.testing.assert_close(fused, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(output, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(weights, expected_weights, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("small", [(K_LEN,), ()], ids=str)
def test_grouped_queries_take_a_mask_without_rows(small):
    query, key, value = make_qkv(lead=(BATCH, 6))
    mask = make(*small, seed=6) > -0.5
    grouped = grouped_query_attention(query, key[:, :2], value[:, :2], mask=mask)
    full = grouped_query_attention(query, key[:, :2], value[:, :2], mask=mask.expand(Q_LEN, K_LEN))
    torch.testing.assert_close(grouped, full, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bringing", ["key", "value"])
@pytest.mark.parametrize("mask_heads", [1, 6])
def test_grouped_queries_take_a_batch_that_only_keys_or_values_have(bringing, mask_heads):
    query = make(6, Q_LEN, HEAD_DIM, seed=1)
    key = make(*(BATCH,) * (bringing == "key"), 2, K_LEN, HEAD_DIM, seed=2)
    value = make(*(BATCH,) * (bringing == "value"), 2, K_LEN, VALUE_DIM, seed=3)
    added = {"mask": make_mask(BATCH, mask_heads), "bias": make(BATCH, 6, Q_LEN, K_LEN, seed=5)}
    expected = scaled_dot_product_attention(
        query, key.repeat_interleave(3, dim=-3), value.repeat_interleave(3, dim=-3), **added
    )
    torch.testing.assert_close(grouped_query_attention(query, key, value, **added), expected)


def test_grouped_queries_repeat_no_key(monkeypatch):
    kernel = Recorder(monkeypatch)
    query, key, value = make_qkv(torch.float32, lead=(BATCH, 6))
    mask = torch.ones(BATCH, 1, 1, K_LEN, dtype=torch.bool)
    bias = make(1, 6, Q_LEN, K_LEN, dtype=torch.float32)
    grouped_query_attention(query, key[:, :2], value[:, :2], mask=mask)
    assert kernel.call[0].shape == (BATCH, 2, 3 * Q_LEN, HEAD_DIM)
    assert kernel.call[1].data_ptr() == key.data_ptr()
    assert kernel.call[2].data_ptr() == value.data_ptr()
    assert kernel.call[3].data_ptr() == mask.data_ptr()
    grouped_query_attention(query, key[:, :2], value[:, :2], bias=bias)
    assert kernel.call[3].data_ptr() == bias.data_ptr()


# --- causal


@pytest.mark.parametrize("q_len", [1, Q_LEN, K_LEN])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 6])
@pytest.mark.parametrize("added", [(), ("mask",), ("bias",), ("mask", "bias")], ids=str)
def test_causal_hides_what_the_causal_mask_hides(q_len, n_kv_heads, added):
    query = make(BATCH, 6, q_len, HEAD_DIM, seed=1)
    key = make(BATCH, n_kv_heads, K_LEN, HEAD_DIM, seed=2)
    value = make(BATCH, n_kv_heads, K_LEN, VALUE_DIM, seed=3)
    given = {
        "mask": make(BATCH, 1, 1, K_LEN, seed=6) > -0.5,
        "bias": make(6, q_len, K_LEN, seed=5),
    }
    given = {name: given[name] for name in added}
    past = causal_mask(q_len, K_LEN)
    expected = {**given, "mask": given.get("mask", past) & past}
    output, weights = grouped_query_attention(query, key, value, **expected, return_weights=True)
    fused = grouped_query_attention(query, key, value, **given, causal=True)
    both = grouped_query_attention(query, key, value, **given, causal=True, return_weights=True)
    torch.testing.assert_close(fused, output, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(both, (output, weights), rtol=1e-12, atol=1e-12)
    if n_kv_heads == 6:
        fused = scaled_dot_product_attention(query, key, value, **given, causal=True)
        torch.testing.assert_close(fused, output, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_kv_heads", [2, 6])
def test_a_whole_text_is_read_without_a_mask(n_kv_heads, monkeypatch):
    kernel = Recorder(monkeypatch)
    query = make(BATCH, 6, K_LEN, HEAD_DIM, seed=1)
    key = make(BATCH, n_kv_heads, K_LEN, HEAD_DIM, seed=2)
    grouped_query_attention(query, key, key, causal=True)
    assert kernel.call[3] is None
    assert kernel.is_causal
    assert kernel.call[0].data_ptr() == query.data_ptr()
    grouped_query_attention(query[:, :, :3], key, key, causal=True)  # the kernel would hide more
    assert not kernel.is_causal


# --- multi-head attention


def test_multi_head_matches_torch():
    ours = MultiHeadAttention(12, 3, bias=True).to(F64)
    torchs = torch.nn.MultiheadAttention(12, 3, batch_first=True, dtype=F64)
    with torch.no_grad():
        for linear in (ours.w_q, ours.w_k, ours.w_v, ours.w_o):
            linear.bias.copy_(make(12, seed=7))
        torchs.in_proj_weight.copy_(torch.cat([w.weight for w in (ours.w_q, ours.w_k, ours.w_v)]))
        torchs.in_proj_bias.copy_(torch.cat([w.bias for w in (ours.w_q, ours.w_k, ours.w_v)]))
        torchs.out_proj.weight.copy_(ours.w_o.weight)
        torchs.out_proj.bias.copy_(ours.w_o.bias)
    x, context = make(2, 5, 12, seed=1), make(2, 7, 12, seed=2)
    for source in (None, context):
        keys = x if source is None else source
        mask = make(5, keys.shape[1], seed=3) > -0.8
        mask[:, 0] = True
        output, weights = ours(x, source, mask=mask, return_weights=True)
        expected, expected_weights = torchs(  # there, True = may not attend
            x, keys, keys, attn_mask=~mask, average_attn_weights=False
        )
        torch.testing.assert_close(output, expected, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(weights, expected_weights, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(ours(x, source, mask=mask), expected, rtol=1e-10, atol=1e-10)


def test_multi_head_is_one_attention_per_head_summed():
    """concat(heads) W_o is the sum of each head times its own rows of W_o; all sizes differ."""
    layer = MultiHeadAttention(
        10, 4, n_kv_heads=2, head_dim=6, value_dim=5, context_dim=7, bias=True
    ).to(F64)
    x, context, mask = make(2, 3, 10, seed=1), make(2, 8, 7, seed=2), make(3, 8, seed=3) > -0.5
    expected = layer.w_o.bias.expand(2, 3, 10).clone()
    for head in range(4):
        kv = head // 2
        rows, kv_rows = slice(6 * head, 6 * head + 6), slice(6 * kv, 6 * kv + 6)
        v_rows, o_columns = slice(5 * kv, 5 * kv + 5), slice(5 * head, 5 * head + 5)
        q = x @ layer.w_q.weight[rows].T + layer.w_q.bias[rows]
        k = context @ layer.w_k.weight[kv_rows].T + layer.w_k.bias[kv_rows]
        v = context @ layer.w_v.weight[v_rows].T + layer.w_v.bias[v_rows]
        scores = (q @ k.mT / math.sqrt(6)).masked_fill(~mask, -torch.inf)
        expected += scores.softmax(-1) @ v @ layer.w_o.weight[:, o_columns].T
    torch.testing.assert_close(layer(x, context, mask=mask), expected, rtol=1e-10, atol=1e-10)
    known = layer.keys_values(context)
    assert [tuple(t.shape) for t in known] == [(2, 2, 8, 6), (2, 2, 8, 5)]
    again = layer(x, keys_values=known, mask=mask)
    torch.testing.assert_close(again, expected, rtol=1e-10, atol=1e-10)


class Marked(Position):
    """Each hook leaves its own trace."""

    def transform(self, q, k, prepared):
        return q * prepared, k + 1.0

    def bias(self, q, k, prepared):
        self.seen = (q, k)
        return prepared * torch.arange(k.shape[-2], dtype=k.dtype).expand(
            1, q.shape[1], q.shape[-2], k.shape[-2]
        )

    def scale(self, head_dim):
        return 0.25 / head_dim


def test_position_hooks_are_used_in_their_places():
    layer, x, position = MultiHeadAttention(6, 2).to(F64), make(2, 5, 6), Marked()
    q, k, v = (split_heads(w(x), 2) for w in (layer.w_q, layer.w_k, layer.w_v))
    bias = 0.5 * torch.arange(5, dtype=F64)
    expected, _ = loop(0.5 * q, k + 1.0, v, bias=bias.expand(5, 5), scale=0.25 / 3)
    actual = layer(x, state=LayerState(position, 0.5))
    torch.testing.assert_close(actual, layer.w_o(merge_heads(expected)), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(position.seen[0], 0.5 * q)  # bias sees them after transform
    torch.testing.assert_close(position.seen[1], k + 1.0)
    own = MultiHeadAttention(6, 2, scale=2.0).to(F64)
    own.load_state_dict(layer.state_dict())
    expected, _ = loop(0.5 * q, k + 1.0, v, bias=bias.expand(5, 5), scale=2.0)
    actual = own(x, state=LayerState(position, 0.5))
    torch.testing.assert_close(actual, layer.w_o(merge_heads(expected)), rtol=1e-10, atol=1e-10)


# --- errors


def _bad_qkv():
    q, k, v = make(2, 3, 4), make(2, 5, 4), make(2, 5, 6)
    yield q[0, 0], k, v, {}, r"query needs at least 2 dimensions .* got shape \(4,\)"
    yield q.long(), k, v, {}, "query must be floating point, got torch.int64"
    yield q, k.float(), v, {}, "key is torch.float32 but query is torch.float64"
    yield q, k, v.to("meta"), {}, "value is on meta but query is on cpu"
    yield q, k[..., :3], v, {}, "query has head_dim 4 but key has 3"
    yield q[..., :0], k[..., :0], v, {}, "head_dim 0"
    yield q, k, v[:, :4], {}, "key has 5 positions but value has 4"
    yield q, k[:, :0], v[:, :0], {}, "0 positions: a query needs at least 1 key"
    yield q, torch.cat([k, k[:1]]), v, {}, r"do not broadcast: query \(2, 3, 4\), key \(3, 5, 4\)"
    yield q, k, v, {"mask": torch.ones(3, 5)}, "mask must be torch.bool .* got torch.float32"
    mask = torch.ones(3, 5, dtype=torch.bool)
    yield q, k, v, {"bias": mask}, "bias must be floating point, got torch.bool"
    yield q, k, v, {"mask": mask.to("meta")}, "mask is on meta but query is on cpu"
    yield q, k, v, {"mask": mask.T}, r"mask of shape \(5, 3\) does not .* \(2, 3, 5\)"
    # a mask may not add dimensions or rows that the scores do not have
    yield q, k, v, {"mask": mask.expand(7, 1, 3, 5)}, r"mask of shape \(7, 1, 3, 5\) does not"
    yield (
        q,
        k,
        v,
        {"bias": torch.ones(2, 3, 4)},
        r"bias of shape \(2, 3, 4\) does not .* \(2, 3, 5\)",
    )


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("case", list(_bad_qkv()), ids=lambda case: case[-1])
def test_bad_tensors_are_refused(case, return_weights):
    q, k, v, kwargs, match = case
    with pytest.raises(ValueError, match=match):
        scaled_dot_product_attention(q, k, v, **kwargs, return_weights=return_weights)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: split_heads(make(2, 7), 2), r"shape \(2, 7\) into n_heads=2"),
        (lambda: split_heads(make(2, 6), 0), "n_heads=0"),
        (lambda: split_heads(make(6), 2), r"shape \(6,\)"),
        (lambda: merge_heads(make(2, 6)), r"shape \(2, 6\)"),
        (
            lambda: grouped_query_attention(make(4, 3, 2), make(3, 5, 2), make(3, 5, 2)),
            "4 query heads cannot share 3 key heads",
        ),
        (
            lambda: grouped_query_attention(make(4, 3, 2), make(2, 5, 2), make(1, 5, 2)),
            "2 key heads and 1 value heads",
        ),
        (
            lambda: grouped_query_attention(make(3, 2), make(5, 2), make(5, 2)),
            r"query needs at least 3 dimensions .* \(3, 2\)",
        ),
        (
            lambda: grouped_query_attention(
                make(4, 3, 2), make(2, 5, 2), make(2, 5, 2), mask=torch.ones(2, 3, 5) > 0
            ),
            r"mask of shape \(2, 3, 5\) does not broadcast to .* \(4, 3, 5\)",
        ),
        (lambda: MultiHeadAttention(10, 3), "d_model=10 does not divide into n_heads=3"),
        (lambda: MultiHeadAttention(12, 6, n_kv_heads=4), "n_heads=6 .* n_kv_heads=4"),
        (lambda: MultiHeadAttention(12, 0), "n_heads=0"),
        (lambda: MultiHeadAttention(12, 2, value_dim=0), "value_dim=0"),
        (
            lambda: MultiHeadAttention(6, 2)(
                make(1, 3, 6).float(), make(1, 4, 6).float(), state=LayerState(Position())
            ),
            "cross-attention takes no position .* position=Position and cache=NoneType",
        ),
        (lambda: MultiHeadAttention(6, 2)(torch.ones(1, 3, 5)), r"x has shape \(1, 3, 5\).* 6\)"),
        (
            lambda: MultiHeadAttention(6, 2, context_dim=4)(torch.ones(1, 3, 6)),
            r"context has shape \(1, 3, 6\), need \(batch, length, 4\)",
        ),
        (
            lambda: MultiHeadAttention(6, 2)(
                torch.ones(1, 3, 6),
                torch.ones(1, 5, 6),
                keys_values=(torch.ones(1, 2, 4, 3), torch.ones(1, 2, 4, 3)),
            ),
            "the context or its keys_values, got both",
        ),
    ],
)
def test_bad_calls_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_a_refused_mask_leaves_the_cache_as_it_was():
    layer, cache = MultiHeadAttention(6, 2), KVCache(1, 2, 5, 3)
    state, mask = LayerState(cache=cache), torch.ones(1, 3) > 0
    with torch.no_grad():
        layer(torch.ones(1, 3, 6), state=state)
        with pytest.raises(ValueError, match=r"mask of shape \(1, 3\) .* \(1, 2, 1, 4\)"):
            layer(torch.ones(1, 1, 6), state=state, mask=mask)
    assert cache.length == 3


# --- dtypes and devices


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-6), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)],
)
@pytest.mark.parametrize("bias_dtype", [None, torch.float32, F64])
@pytest.mark.parametrize("mask_lead", [None, (), (BATCH, 1), (BATCH, HEADS)], ids=str)
def test_half_precision_stays_near_float64(dtype, tolerance, bias_dtype, mask_lead):
    """Tolerance: 8 and 11 bits of a value up to 3 are 0.012 and 0.0015; the sum rounds again."""
    query, key, value = make_qkv(dtype, value_dim=HEAD_DIM)
    mask = None if mask_lead is None else make_mask(*mask_lead)
    bias = None if bias_dtype is None else make(1, HEADS, Q_LEN, K_LEN, dtype=bias_dtype, seed=5)
    expected, _ = loop(query, key, value, mask, bias)
    fused = scaled_dot_product_attention(query, key, value, mask=mask, bias=bias)
    output, weights = scaled_dot_product_attention(
        query, key, value, mask=mask, bias=bias, return_weights=True
    )
    for actual in (fused, output):
        assert actual.dtype == dtype
        torch.testing.assert_close(actual.double(), expected, rtol=tolerance, atol=tolerance)
    assert weights.dtype == dtype


def test_softmax_of_the_readable_path_is_computed_wide():
    """4096 equal keys: in float16, 4096 * exp(0) is exact, but the mean of 1s must be 1."""
    query, key = torch.ones(1, 8, dtype=torch.float16), torch.ones(4096, 8, dtype=torch.float16)
    key[::2] *= 1.01
    value = torch.full((4096, 1), 3.0, dtype=torch.float16)
    output, _ = scaled_dot_product_attention(query, key, value, return_weights=True)
    assert output.item() == 3.0
    # 300 * 300 overflows float16 before the scale, and must not
    big = torch.full((1, 64), 300.0, dtype=torch.float16)
    output, _ = scaled_dot_product_attention(big, big, value[:1], return_weights=True)
    assert output.item() == 3.0


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("with_bias", [False, True])
def test_on_a_gpu(dtype, with_bias):
    tensors = (make(BATCH, 6, Q_LEN, 8), make(BATCH, 2, K_LEN, 8), make(BATCH, 2, K_LEN, 8))
    tensors = [x.to("cuda", dtype).requires_grad_() for x in tensors]
    mask = make_mask(BATCH, 1).cuda()
    bias = make(1, 6, Q_LEN, K_LEN, dtype=torch.float32).cuda() if with_bias else None
    fused = grouped_query_attention(*tensors, mask=mask, bias=bias)
    output, _ = grouped_query_attention(*tensors, mask=mask, bias=bias, return_weights=True)
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(fused, output, rtol=tolerance, atol=tolerance)
    assert (fused[:, :, 2] == 0).all()
    fused.float().square().sum().backward()
    assert all(x.grad.isfinite().all() for x in tensors)
    assert causal_mask(2, 3, device="cuda").is_cuda
