"""lib.latent: against DeepSeek-V3 in ``transformers``, absorbed, cached, in a model, its bytes."""

import pytest
import torch
from transformers.models.deepseek_v3 import DeepseekV3Config, modeling_deepseek_v3

from lib.attention import LayerState, causal_mask
from lib.generation import generate
from lib.kv_cache import kv_cache_bytes
from lib.latent import LatentAttention
from lib.position import NoPosition
from lib.rope import RotaryPosition, rope_frequencies, rope_tables
from lib.transformer import LanguageModel
from tests.test_attention_options import make, randomize

F64 = torch.float64
BATCH, LENGTH, D_MODEL, HEADS = 2, 7, 24, 3
SIZES = {"head_dim": 5, "rope_dim": 4, "value_dim": 6, "latent_dim": 9}
CLOSE = {"rtol": 0, "atol": 1e-12}


def make_attention(**changes):
    return randomize(LatentAttention(D_MODEL, HEADS, **{**SIZES, **changes}))


def at(positions, cache=None):
    """A layer's state with RoPE at these positions."""
    scheme = RotaryPosition(SIZES["rope_dim"]).double()
    positions = torch.as_tensor(positions)[None]
    return LayerState(scheme, scheme.prepare(positions, positions), cache)


# --- against transformers


@pytest.mark.parametrize("q_latent_dim", [None, 11])
@pytest.mark.parametrize("absorbed", [False, True])
def test_it_is_deepseek_v3s(absorbed, q_latent_dim):
    config = DeepseekV3Config(
        hidden_size=D_MODEL,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        q_lora_rank=q_latent_dim,
        kv_lora_rank=9,
        qk_nope_head_dim=5,
        qk_rope_head_dim=4,
        v_head_dim=6,
        attn_implementation="eager",
    )
    theirs = randomize(modeling_deepseek_v3.DeepseekV3Attention(config, 0))
    ours = make_attention(q_latent_dim=q_latent_dim, absorbed=absorbed)
    if q_latent_dim is None:
        ours.w_uq.weight.data = theirs.q_proj.weight
    else:
        ours.w_dq.weight.data = theirs.q_a_proj.weight
        ours.q_latent_norm.weight.data = theirs.q_a_layernorm.weight
        ours.w_uq.weight.data = theirs.q_b_proj.weight
    down, rope = theirs.kv_a_proj_with_mqa.weight.split([9, 4])
    ours.w_dkv.weight.data, ours.w_kr.weight.data = down, rope
    ours.latent_norm.weight.data = theirs.kv_a_layernorm.weight
    up = theirs.kv_b_proj.weight.unflatten(0, (HEADS, 5 + 6))
    ours.w_uk.weight.data = up[:, :5].flatten(0, 1)
    ours.w_uv.weight.data = up[:, 5:].flatten(0, 1)
    ours.w_o.weight.data = theirs.o_proj.weight

    x, positions = make(BATCH, LENGTH, D_MODEL), torch.tensor([2, 3, 4, 8, 9, 10, 30])
    cos, sin = rope_tables(positions[None], rope_frequencies(4), dtype=F64)
    tables = torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)
    mask = causal_mask(LENGTH, LENGTH)
    hidden = torch.zeros(LENGTH, LENGTH, dtype=F64).masked_fill(~mask, -torch.inf)[None, None]
    expected, weights = theirs(x, tables, hidden)
    output, our_weights = ours(x, mask=mask, state=at(positions), return_weights=True)
    torch.testing.assert_close(our_weights, weights, rtol=0, atol=1e-6)  # norms in float32
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)


# --- absorbed and cached


@pytest.mark.parametrize("position", ["rope", "none"])
def test_absorbed_equals_expanded(position):
    attention = make_attention()
    x = make(BATCH, LENGTH, D_MODEL)
    state = at(range(3, 3 + LENGTH)) if position == "rope" else None
    generator = torch.Generator().manual_seed(6)
    mask = torch.rand(BATCH, HEADS, LENGTH, LENGTH, generator=generator) > 0.3
    results = []
    for attention.absorbed in (False, True):
        options = {"mask": mask, "state": state}
        output, weights = attention(x, **options, return_weights=True)
        torch.testing.assert_close(attention(x, **options), output, **CLOSE)
        results.append((output, weights))
    for expanded, absorbed in zip(*results, strict=True):
        torch.testing.assert_close(absorbed, expanded, **CLOSE)


def test_a_score_by_hand():
    """The weights of one query are those of the two dot products, latent and rotated, added."""
    attention = make_attention()
    x = make(1, LENGTH, D_MODEL)
    _, weights = attention(x, state=at(range(LENGTH)), return_weights=True)
    theta = rope_frequencies(4)
    for h in range(HEADS):
        query = attention.w_uq(x[0]).unflatten(-1, (HEADS, 9))[:, h]
        c = x[0] @ attention.w_dkv.weight.T
        c = c / (c.square().mean(-1, keepdim=True) + 1e-6).sqrt() * attention.latent_norm.weight
        keys = c @ attention.w_uk.weight.unflatten(0, (HEADS, 5))[h].T
        position = torch.complex(query[:, 5::2], query[:, 6::2])
        rotated = attention.w_kr(x[0])
        rotated = torch.complex(rotated[:, 0::2], rotated[:, 1::2])
        offset = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)  # m - n
        turn = torch.exp(1j * offset[..., None] * theta)
        both = (position[:, None] * rotated[None].conj() * turn).real.sum(-1)
        scores = (query[:, :5] @ keys.T + both) / 3.0  # the root of 5 + 4
        torch.testing.assert_close(weights[0, h], scores.softmax(dim=-1), **CLOSE)


@pytest.mark.parametrize("absorbed", [False, True])
@pytest.mark.parametrize("pieces", [[1] * 7, [3, 1, 2, 1], [7]], ids=str)
def test_cached_equals_uncached(pieces, absorbed):
    attention = make_attention(absorbed=absorbed)
    x, first = make(BATCH, LENGTH, D_MODEL), 4
    full = attention(x, mask=causal_mask(LENGTH, LENGTH), state=at(range(first, first + LENGTH)))
    cache = attention.make_cache(BATCH, LENGTH, dtype=F64)
    outputs = []
    for piece in x.split(pieces, dim=1):
        start, end = cache.length, cache.length + piece.shape[1]
        state = at(range(first + start, first + end), cache)
        outputs.append(attention(piece, mask=causal_mask(end - start, end), state=state))
    torch.testing.assert_close(torch.cat(outputs, dim=1), full, **CLOSE)


def test_the_cache_holds_a_latent_and_one_rotated_key_and_no_more():
    attention = make_attention()
    for dtype in (F64, torch.bfloat16):
        cache = attention.make_cache(BATCH, 10, dtype=dtype)
        assert cache.nbytes == BATCH * 10 * (9 + 4) * dtype.itemsize
        assert cache.nbytes == kv_cache_bytes(
            10, n_layers=1, n_kv_heads=1, head_dim=9, value_dim=4, batch_size=BATCH, dtype=dtype
        )
    cache = attention.make_cache(BATCH, 10, dtype=F64)
    x = make(BATCH, LENGTH, D_MODEL)
    attention(x, state=at(range(LENGTH), cache))
    empty = torch.empty(BATCH, 1, 0, 9, dtype=F64), torch.empty(BATCH, 1, 0, 4, dtype=F64)
    latent, rotated = cache.update(*empty)
    torch.testing.assert_close(latent[:, 0], attention.latent_norm(attention.w_dkv(x)))
    torch.testing.assert_close(rotated[:, 0, 0], attention.w_kr(x)[:, 0])  # position 0
    assert not torch.allclose(rotated[:, 0, 1], attention.w_kr(x)[:, 1], atol=0.1)


@pytest.mark.parametrize("absorbed", [False, True])
def test_in_a_model_with_left_padding(absorbed):
    torch.manual_seed(1)
    model = LanguageModel(13, D_MODEL, 2, HEADS, head_dim=4, position=RotaryPosition(4))
    for layer, block in enumerate(model.blocks):
        block.self_attention = make_attention(absorbed=absorbed, q_latent_dim=8)
        randomize(block.self_attention, seed=layer)
    model = model.double().eval().requires_grad_(False)
    tokens = torch.randint(13, (2, 9), generator=torch.Generator().manual_seed(2))
    real = torch.tensor([[False] * 3 + [True] * 6, [True] * 9])
    full = model(tokens, mask=real)
    state = model.decode_state(2, 9)
    ours = [block.self_attention.make_cache(2, 9, dtype=F64) for block in model.blocks]
    assert state.nbytes == sum(cache.nbytes for cache in ours)
    pieces = [model(tokens[:, :5], mask=real[:, :5], state=state)]
    pieces += [model(piece, state=state) for piece in tokens[:, 5:].split([1, 2, 1], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1)[real], full[real], **CLOSE)
    alone = model(tokens[:1, 3:])
    torch.testing.assert_close(full[:1, 3:], alone, **CLOSE)
    prompt = {"prompt": tokens, "max_new_tokens": 5, "prompt_mask": real}
    assert torch.equal(generate(model, **prompt), generate(model, **prompt, use_cache=False))


# --- errors


def test_bad_calls_are_refused_and_leave_the_cache_as_it_was():
    attention = make_attention()
    cache = attention.make_cache(BATCH, 3, dtype=F64)
    x = make(BATCH, 2, D_MODEL)
    with pytest.raises(ValueError, match=r"x has shape \(2, 2, 23\)"):
        attention(x[..., 1:])
    mask, plain = torch.ones(2, 9, dtype=torch.bool), LayerState(NoPosition(), None, cache)
    with pytest.raises(ValueError, match=r"mask of shape \(2, 9\) does not broadcast"):
        attention(x, mask=mask, state=plain)
    scheme, positions = RotaryPosition(6).double(), torch.arange(2)[None]
    wide = LayerState(scheme, scheme.prepare(positions, positions), cache)
    with pytest.raises(ValueError, match="made for head_dim=6"):
        attention(x, state=wide)
    assert cache.length == 0


@pytest.mark.parametrize(
    "name", ["head_dim", "rope_dim", "value_dim", "latent_dim", "q_latent_dim"]
)
def test_a_size_below_one_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}=0"):
        make_attention(**{name: 0})
