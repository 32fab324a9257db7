"""QK-norm, soft-cap, sinks and gates of :mod:`lib.attention`: by hand, and against other code.

Each option is compared with the attention of a model in the ``transformers`` package that has it.
The norms there compute in float32, so those agree to 1e-6.
"""

import math

import pytest
import torch
from transformers.models.gemma2 import Gemma2Config, modeling_gemma2
from transformers.models.gpt_oss import GptOssConfig, modeling_gpt_oss
from transformers.models.qwen3 import Qwen3Config, modeling_qwen3
from transformers.models.qwen3_next import Qwen3NextConfig, modeling_qwen3_next

from lib.attention import (
    LayerState,
    MultiHeadAttention,
    attention_with_sinks,
    causal_mask,
    grouped_query_attention,
    scaled_dot_product_attention,
)
from lib.block import Block
from lib.norms import layer_norm, rms_norm
from lib.rope import RotaryPosition, apply_rope, rope_frequencies, rope_matrix, rope_tables
from lib.transformer import LanguageModel

F64 = torch.float64
BATCH, HEADS, KV_HEADS, LENGTH, HEAD_DIM, D_MODEL = 2, 6, 2, 5, 8, 24
CLOSE = {"rtol": 0, "atol": 1e-12}
IN_FLOAT32 = {"rtol": 0, "atol": 1e-6}


def make(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def make_qkv(k_len=7):
    return (
        make(BATCH, HEADS, LENGTH, HEAD_DIM, seed=1),
        make(BATCH, KV_HEADS, k_len, HEAD_DIM, seed=2),
        make(BATCH, KV_HEADS, k_len, 3, seed=3),
    )


def randomize(module, seed=5):
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=F64)
        parameter.data = 0.4 * noise + (1.0 if parameter.dim() == 1 else 0.0)
    return module.double().eval().requires_grad_(False)


# --- the three against transformers

SIZES = {
    "hidden_size": D_MODEL,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "num_hidden_layers": 1,
    "layer_types": ["full_attention"],
    "attn_implementation": "eager",
}


def run_theirs(attention, x, tables):
    hidden = torch.zeros(LENGTH, LENGTH, dtype=F64)
    hidden = hidden.masked_fill(~causal_mask(LENGTH, LENGTH), -torch.inf)
    return attention(x, tables, hidden[None, None])


def no_rotation(width=HEAD_DIM):
    """Tables of position 0 everywhere."""
    shape = (BATCH, LENGTH, width)
    return torch.ones(shape, dtype=F64), torch.zeros(shape, dtype=F64)


def copied(theirs, **options):
    """Our attention with the weights of theirs."""
    bias = theirs.k_proj.bias is not None
    ours = MultiHeadAttention(
        D_MODEL, HEADS, n_kv_heads=KV_HEADS, head_dim=HEAD_DIM, bias=bias, **options
    ).double()
    for mine, other in (("w_q", "q_proj"), ("w_k", "k_proj"), ("w_v", "v_proj"), ("w_o", "o_proj")):
        if mine == "w_q" and options.get("gated"):
            query, gate = theirs.q_proj.weight.unflatten(0, (HEADS, 2, HEAD_DIM)).unbind(1)
            ours.w_q.weight.data = query.flatten(0, 1)
            ours.w_g.weight.data = gate.flatten(0, 1)
        else:
            getattr(ours, mine).load_state_dict(getattr(theirs, other).state_dict())
    return ours.eval().requires_grad_(False)


def test_qk_norm_is_qwen3s_before_the_rotation():
    config = Qwen3Config(**SIZES, rms_norm_eps=1e-6)
    theirs = randomize(modeling_qwen3.Qwen3Attention(config, 0))
    ours = copied(theirs, qk_norm=True)
    ours.q_norm.weight.data, ours.k_norm.weight.data = theirs.q_norm.weight, theirs.k_norm.weight
    assert theirs.q_norm.weight.std() > 0.1  # gains that do not commute with a rotation
    positions = torch.tensor([[3, 4, 9, 11, 12]])
    cos, sin = rope_tables(positions, rope_frequencies(HEAD_DIM), dtype=F64)
    tables = torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)
    x = 3.0 * make(BATCH, LENGTH, D_MODEL, seed=6)
    expected, weights = run_theirs(theirs, x, tables)
    rope = RotaryPosition(HEAD_DIM, layout="half").double()
    state = LayerState(rope, rope.prepare(positions, positions))
    mask = causal_mask(LENGTH, LENGTH)
    output, our_weights = ours(x, mask=mask, state=state, return_weights=True)
    torch.testing.assert_close(our_weights, weights, **IN_FLOAT32)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(ours(x, mask=mask, state=state), output)


def test_the_soft_cap_is_gemma_2s():
    config = Gemma2Config(**SIZES, attn_logit_softcapping=1.5, query_pre_attn_scalar=HEAD_DIM)
    theirs = randomize(modeling_gemma2.Gemma2Attention(config, 0))
    ours = copied(theirs, softcap=1.5)
    x = 2.0 * make(BATCH, LENGTH, D_MODEL, seed=6)
    expected, weights = run_theirs(theirs, x, no_rotation())
    output, our_weights = ours(x, mask=causal_mask(LENGTH, LENGTH), return_weights=True)
    torch.testing.assert_close(our_weights, weights, **IN_FLOAT32)  # its softmax is float32
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)


def test_sinks_are_those_of_gpt_oss():
    config = GptOssConfig(**SIZES)
    theirs = randomize(modeling_gpt_oss.GptOssAttention(config, 0))
    ours = copied(theirs, sinks=True)
    ours.sinks.data = theirs.sinks
    x = make(BATCH, LENGTH, D_MODEL, seed=6)
    expected, weights = run_theirs(theirs, x, no_rotation(HEAD_DIM // 2))
    output, our_weights = ours(x, mask=causal_mask(LENGTH, LENGTH), return_weights=True)
    assert our_weights.sum(dim=-1).mean() < 0.95
    torch.testing.assert_close(our_weights, weights, **CLOSE)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(ours(x, mask=causal_mask(LENGTH, LENGTH)), expected, **CLOSE)


def test_gates_are_those_of_qwen3_next():
    config = Qwen3NextConfig(**SIZES)
    theirs = randomize(modeling_qwen3_next.Qwen3NextAttention(config, 0))
    ours = copied(theirs, gated=True, qk_norm=True)
    ours.q_norm.weight.data = 1.0 + theirs.q_norm.weight  # their gain is stored less 1
    ours.k_norm.weight.data = 1.0 + theirs.k_norm.weight
    x = make(BATCH, LENGTH, D_MODEL, seed=6)
    expected, _ = run_theirs(theirs, x, no_rotation())
    output = ours(x, mask=causal_mask(LENGTH, LENGTH))
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)


# --- QK-norm and rotary position


def rotate(x, positions, layout="interleaved"):
    tables = rope_tables(positions, rope_frequencies(x.shape[-1], base=20.0), dtype=x.dtype)
    return apply_rope(x, *tables, layout=layout)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_rms_norm_commutes_with_rope_only_for_gains_that_are_equal_within_pairs(layout):
    x, positions = make(9, HEAD_DIM, seed=7), torch.arange(1, 10)
    by_pair = 1.0 + make(HEAD_DIM // 2, seed=8).abs()
    paired = by_pair.repeat_interleave(2) if layout == "interleaved" else by_pair.repeat(2)
    single = paired.clone()
    single[0] *= 1.5  # one component of one pair
    for gain, commutes in ((None, True), (paired, True), (single, False)):
        first = rotate(rms_norm(x, gain), positions, layout)
        last = rms_norm(rotate(x, positions, layout), gain)
        assert torch.allclose(first, last, atol=1e-6) == commutes
        if gain is not None:
            rotation = rope_matrix(2, rope_frequencies(HEAD_DIM), layout=layout, dtype=F64)
            product = gain.diag() @ rotation - rotation @ gain.diag()
            assert (product.abs().max() < 1e-12) == commutes
    assert not torch.allclose(
        rotate(layer_norm(x), positions, layout), layer_norm(rotate(x, positions, layout)), atol=0.1
    )


def test_normed_scores_stay_within_their_bound_however_large_the_weights():
    attention = randomize(MultiHeadAttention(D_MODEL, HEADS, head_dim=HEAD_DIM, qk_norm=True))
    for w in (attention.w_q, attention.w_k):
        w.weight.data *= 1e4
    x = make(BATCH, LENGTH, D_MODEL, seed=6)
    query = attention.q_norm(attention.w_q(x).unflatten(-1, (HEADS, HEAD_DIM)))
    key, _ = attention.keys_values(x)
    scores = query.transpose(1, 2) @ key.mT / math.sqrt(HEAD_DIM)
    gains = attention.q_norm.weight.abs().max() * attention.k_norm.weight.abs().max()
    assert scores.abs().max() <= math.sqrt(HEAD_DIM) * gains
    assert scores.abs().max() > 0.3 * math.sqrt(HEAD_DIM) * gains


# --- the soft-cap


def test_the_soft_cap_by_hand_comes_before_bias_and_mask():
    query, key = torch.ones(1, 1, dtype=F64), torch.tensor([[3.0], [-8.0], [5.0]], dtype=F64)
    bias = torch.tensor([[0.0, 4.0, 0.0]], dtype=F64)
    mask = torch.arange(3)[None] < 2
    options = {"scale": 1.0, "bias": bias, "mask": mask, "softcap": 2.0}
    value = torch.eye(3, dtype=F64)
    terms = [math.exp(2 * math.tanh(1.5)), math.exp(2 * math.tanh(-4.0) + 4.0), 0.0]
    expected = torch.tensor([[term / sum(terms) for term in terms]], dtype=F64)
    output, weights = scaled_dot_product_attention(
        query, key, value, return_weights=True, **options
    )
    torch.testing.assert_close(weights, expected, **CLOSE)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(
        scaled_dot_product_attention(query, key, value, **options), expected, **CLOSE
    )


def test_the_soft_cap_reaches_grouped_heads_and_a_huge_one_changes_nothing():
    query, key, value = make_qkv()
    plain = grouped_query_attention(query, key, value, scale=2.0)
    capped = grouped_query_attention(query, key, value, scale=2.0, softcap=1.0)
    repeated = (x.repeat_interleave(HEADS // KV_HEADS, dim=1) for x in (key, value))
    expected = scaled_dot_product_attention(query, *repeated, scale=2.0, softcap=1.0)
    torch.testing.assert_close(capped, expected, **CLOSE)
    assert (capped - plain).abs().max() > 0.1
    huge = grouped_query_attention(query, key, value, scale=2.0, softcap=1e7)
    torch.testing.assert_close(huge, plain, **CLOSE)


# --- sinks


def loop_with_sinks(query, key, value, sinks, mask, bias, scale):
    """Numerator and denominator of each weight, written out."""
    weights = torch.zeros(BATCH, HEADS, LENGTH, key.shape[-2], dtype=F64)
    output = torch.zeros(BATCH, HEADS, LENGTH, value.shape[-1], dtype=F64)
    for b, h, m in torch.cartesian_prod(*map(torch.arange, (BATCH, HEADS, LENGTH))).tolist():
        j = h // (HEADS // KV_HEADS)
        scores = scale * key[b, j] @ query[b, h, m] + bias[b, h, m]
        terms = scores.exp() * mask[b, h, m]
        weights[b, h, m] = terms / (terms.sum() + sinks[h].exp())
        output[b, h, m] = weights[b, h, m] @ value[b, j]
    return output, weights


@pytest.mark.parametrize(
    "shape", [None, (7,), (1, 7), (5, 1), (6, 1, 7), (2, 1, 1, 7), (2, 6, 5, 7)], ids=str
)
def test_sinks_match_the_loop_with_any_mask_and_bias(shape):
    query, key, value = make_qkv()
    sinks = make(HEADS, seed=9)
    whole = (BATCH, HEADS, LENGTH, 7)
    mask = bias = None
    if shape is not None:
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) > 0.3
        bias = make(*shape, seed=10)
    all_mask = torch.ones(whole, dtype=torch.bool) if mask is None else mask.expand(whole)
    all_bias = torch.zeros(whole, dtype=F64) if bias is None else bias.expand(whole)
    expected = loop_with_sinks(query, key, value, sinks, all_mask, all_bias, 0.4)
    options = {"mask": mask, "bias": bias, "scale": 0.4}
    result = attention_with_sinks(query, key, value, sinks, **options, return_weights=True)
    for ours, theirs in zip(result, expected, strict=True):
        torch.testing.assert_close(ours, theirs, **CLOSE)
    output = attention_with_sinks(query, key, value, sinks, **options)
    torch.testing.assert_close(output, expected[0], **CLOSE)


def test_a_sink_takes_all_or_nothing_at_its_limits():
    query, key, value = make_qkv()
    plain = grouped_query_attention(query, key, value)
    none = attention_with_sinks(query, key, value, torch.full((HEADS,), -1e4, dtype=F64))
    torch.testing.assert_close(none, plain, **CLOSE)
    whole = attention_with_sinks(query, key, value, torch.full((HEADS,), 1e4, dtype=F64))
    assert not whole.any()
    hidden = torch.zeros(LENGTH, 7, dtype=torch.bool)  # a query that may see nothing
    assert not attention_with_sinks(
        query, key, value, torch.zeros(HEADS).double(), mask=hidden
    ).any()


def test_sinks_learn():
    attention = randomize(MultiHeadAttention(D_MODEL, HEADS, sinks=True, head_dim=4))
    attention.sinks.requires_grad_()
    attention(make(BATCH, LENGTH, D_MODEL, seed=6)).square().sum().backward()
    assert (attention.sinks.grad < 0).all()  # a larger sink means a smaller output


# --- in a model

OPTIONS = {"qk_norm": True, "softcap": 2.0, "sinks": True, "gated": True}


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("option", [*OPTIONS, "all"])
def test_cached_decoding_equals_the_full_forward(option, padded):
    options = OPTIONS if option == "all" else {option: OPTIONS[option]}
    sizes = {"n_kv_heads": 2, "head_dim": 6, "position": RotaryPosition(6)}
    torch.manual_seed(1)
    plain = LanguageModel(13, D_MODEL, 2, 4, **sizes).double()
    torch.manual_seed(1)
    model = LanguageModel(13, D_MODEL, 2, 4, **sizes, **options).double()
    for name, parameter in model.named_parameters():
        if "sinks" in name or "q_norm" in name or "k_norm" in name:
            parameter.data += make(*parameter.shape, seed=4)
    plain, model = plain.eval().requires_grad_(False), model.eval().requires_grad_(False)
    tokens = torch.randint(13, (2, 9), generator=torch.Generator().manual_seed(2))
    real = torch.tensor([[not padded] * 2 + [True] * 7, [True] * 9])  # padding on the left
    mask = {"mask": real} if padded else {}
    full = model(tokens, **mask)
    state = model.decode_state(2, 9)
    first = {"mask": real[:, :4]} if padded else {}
    pieces = [model(tokens[:, :4], **first, state=state)]
    pieces += [model(piece, state=state) for piece in tokens[:, 4:].split([1, 3, 1], dim=1)]
    cached = torch.cat(pieces, dim=1)
    torch.testing.assert_close(cached[real], full[real], **CLOSE)
    assert (model(tokens) - plain(tokens)).abs().max() > 0.01  # the option arrived


def test_cross_attention_takes_them_too():
    torch.manual_seed(1)
    block = Block(D_MODEL, 4, cross_attention=True, **OPTIONS).double().eval()
    x, context = make(BATCH, LENGTH, D_MODEL), make(BATCH, 7, D_MODEL, seed=1)
    pair = block.cross_attention.keys_values(context)
    torch.testing.assert_close(block(x, context_keys_values=pair), block(x, context=context))


def test_without_options_nothing_is_added():
    names = set(MultiHeadAttention(8, 2).state_dict())
    assert names == {f"w_{part}.weight" for part in "qkvo"}


@pytest.mark.parametrize("softcap", [0.0, -1.0, math.nan])
def test_a_cap_has_to_be_positive(softcap):
    query, key, value = make_qkv()
    with pytest.raises(ValueError, match="softcap must be positive"):
        grouped_query_attention(query, key, value, softcap=softcap)
    with pytest.raises(ValueError, match="softcap must be positive"):
        MultiHeadAttention(8, 2, softcap=softcap)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"sinks": torch.zeros(HEADS - 1)}, r"shape \(5,\), need one number for each of 6 heads"),
        ({"sinks": torch.zeros(HEADS, 1)}, r"shape \(6, 1\)"),
        ({"mask": torch.ones(LENGTH, 8, dtype=torch.bool)}, r"\(5, 8\) does not broadcast"),
        ({"bias": torch.ones(LENGTH, 8)}, r"\(5, 8\) does not broadcast"),
        ({"key": make(BATCH, 4, 7, HEAD_DIM)}, "cannot share 4 key heads"),
        ({"query": make(LENGTH, HEAD_DIM)}, "query needs at least 3 dimensions"),
    ],
)
def test_bad_sinks_are_refused(changes, match):
    query, key, value = make_qkv()
    given = {"query": query, "key": key, "value": value, "sinks": torch.zeros(HEADS), **changes}
    with pytest.raises(ValueError, match=match):
        attention_with_sinks(**given)
