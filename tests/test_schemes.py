"""Every position scheme in every model: cached decoding equals the full forward.

The models are tiny and random; the schemes' parameters are drawn large, so that a wrong position
shows. Tolerance: float64 to 1e-10; the narrower dtypes say theirs.
"""

import dataclasses
import subprocess
import sys

import pytest
import torch

from lib import rope
from lib.generation import generate
from lib.position import Position
from lib.schemes import SCHEMES, ModelSizes, make_position
from lib.transformer import Encoder, LanguageModel, Seq2Seq

F64 = torch.float64
VOCAB, D_MODEL, LAYERS, HEADS, HEAD_DIM = 13, 20, 2, 4, 6
TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}

SIZES = ModelSizes(D_MODEL, HEADS, HEAD_DIM, max_len=64)
OPTIONS = {  # that make the scheme harder: it would be the same at distances below a dozen
    "sinusoidal": {"base": 100.0},
    "shaw": {"max_distance": 4},
    "t5": {"num_buckets": 8, "max_distance": 12},
}
VARIANTS = {  # names with a scheme of the registry, and its options
    "rope-half": ("rope", {"layout": "half", "base": 100.0}),
    "rope-partial": ("rope", {"rotary_dim": 4}),
    "rope-linear": ("rope", {"scaling": rope.LinearScaling(2.0)}),
    "rope-ntk": ("rope", {"scaling": rope.NTKScaling(2.0)}),
    "rope-dynamic": ("rope", {"scaling": rope.DynamicNTKScaling(2.0, 4, 12)}),
    "rope-yarn": ("rope", {"scaling": rope.YarnScaling(2.0, original_max_len=32)}),
    "alibi-geometric": ("alibi", {"rule": "geometric"}),
}
EACH = {name: (name, OPTIONS.get(name, {})) for name in SCHEMES} | VARIANTS
scheme = pytest.mark.parametrize("name", EACH)


def new_position(name, causal=True):
    registered, options = EACH[name]
    position = make_position(registered, dataclasses.replace(SIZES, causal=causal), **options)
    for parameter in position.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return position


def is_absolute(position):
    """Whether position is added to the input; the other schemes know distances alone."""
    return type(position).embed is not Position.embed


def make_model(name, **options):
    torch.manual_seed(3)
    return LanguageModel(
        VOCAB, D_MODEL, LAYERS, HEADS, head_dim=HEAD_DIM, position=new_position(name), **options
    ).to(F64)


def make_seq2seq(name, **options):
    torch.manual_seed(3)
    return Seq2Seq(
        VOCAB - 2,
        VOCAB,
        D_MODEL,
        LAYERS,
        HEADS,
        head_dim=HEAD_DIM,
        encoder_position=new_position(name, causal=False),
        decoder_position=new_position(name),
        **options,
    ).to(F64)


def make_tokens(rows, length, vocab=VOCAB, seed=0):
    return torch.randint(vocab, (rows, length), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def in_chunks(model, tokens, sizes, mask=None, state=None):
    """Logits of a cached run that reads the tokens in chunks of these sizes."""
    state = model.decode_state(len(tokens), tokens.shape[1]) if state is None else state
    logits, start = [], 0
    for size in sizes:
        part = slice(start, start + size)
        seen = None if mask is None or mask[:, part].all() else mask[:, part]
        logits.append(model(tokens[:, part], mask=seen, state=state))
        start += size
    assert start == tokens.shape[1] == state.length
    return torch.cat(logits, dim=1)


def test_models_depend_on_no_scheme():
    """Attention, cache, blocks and models know the protocol; the schemes import it."""
    code = """if True:
        import sys
        import lib.generation, lib.transformer
        models = {name for name in sys.modules if name.startswith("lib.")}
        import lib.schemes
        schemes = {type.__module__ for type in lib.position.Position.__subclasses__()}
        print(*sorted(models & schemes))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["lib.position"]  # of NoPosition


def test_schemes_are_found_in_lib_position_too():
    from lib.position import RotaryPosition

    assert RotaryPosition is rope.RotaryPosition
    with pytest.raises(ImportError, match="RopePosition"):
        from lib.position import RopePosition  # noqa: F401


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match="unknown scheme 'ropey', there are none, learned"):
        make_position("ropey", SIZES)


PREFILL_AND_DECODE = (5, 1, 1, 1, 1)
UNEVEN_CHUNKS = (2, 4, 1, 2)
ONE_BY_ONE = (1,) * 9


@scheme
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("norm_placement", ["pre", "post"])
@pytest.mark.parametrize("sizes", [PREFILL_AND_DECODE, UNEVEN_CHUNKS, ONE_BY_ONE], ids=len)
def test_cached_equals_full(name, n_kv_heads, norm_placement, sizes):
    model = make_model(name, n_kv_heads=n_kv_heads, norm_placement=norm_placement)
    tokens = make_tokens(2, 9)
    with torch.no_grad():
        full = model(tokens)
    torch.testing.assert_close(in_chunks(model, tokens, sizes), full, **TOLERANCE)


@scheme
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_rows_of_different_lengths_equal_each_row_alone(name, n_kv_heads):
    """Left padding: 9, 6 and 1 real tokens, padded with tokens that would be noticed."""
    model = make_model(name, n_kv_heads=n_kv_heads, value_dim=5)
    tokens, lengths = make_tokens(3, 9), (9, 6, 1)
    mask = torch.arange(9) >= 9 - torch.tensor(lengths).unsqueeze(-1)
    with torch.no_grad():
        full = model(tokens, mask=mask)
        alone = [model(tokens[i : i + 1, 9 - n :]) for i, n in enumerate(lengths)]
    for logits in (
        full,
        in_chunks(model, tokens, PREFILL_AND_DECODE, mask),
        in_chunks(model, tokens, UNEVEN_CHUNKS, mask),
    ):
        assert logits.isfinite().all()
        for i, n in enumerate(lengths):
            torch.testing.assert_close(logits[i : i + 1, 9 - n :], alone[i], **TOLERANCE)


@scheme
def test_truncated_state_goes_on_as_if_nothing_had_been(name):
    model, tokens = make_model(name), make_tokens(2, 9)
    state = model.decode_state(2, 9)
    with torch.no_grad():
        model(make_tokens(2, 7, seed=9), state=state)
        state.truncate(0)
        model(tokens[:, :4], state=state)
        model(make_tokens(2, 3, seed=8), state=state)
        state.truncate(4)
        rest = model(tokens[:, 4:], state=state)
        torch.testing.assert_close(rest, model(tokens)[:, 4:], **TOLERANCE)


@scheme
def test_only_absolute_schemes_notice_a_shift_of_all_positions(name):
    model, tokens = make_model(name), make_tokens(2, 6)
    positions = torch.tensor([[0, 1, 3, 4, 8, 9], [2, 3, 4, 7, 8, 11]])
    with torch.no_grad():
        here = model(tokens, positions=positions)
        there = model(tokens, positions=positions + 7)
    if is_absolute(model.position):
        assert (here - there).abs().max() > 1e-3
    else:
        torch.testing.assert_close(here, there, **TOLERANCE)


@scheme
def test_given_positions_are_used_in_cached_decoding_too(name):
    model, tokens = make_model(name, n_kv_heads=2), make_tokens(2, 6)
    positions = torch.tensor([[0, 1, 3, 4, 8, 9], [2, 3, 4, 7, 8, 11]])
    state = model.decode_state(2, 6)
    with torch.no_grad():
        full = model(tokens, positions=positions)
        parts = [
            model(tokens[:, part], positions=positions[:, part], state=state)
            for part in (slice(0, 3), slice(3, 4), slice(4, 6))
        ]
        if name != "none":
            assert (full - model(tokens)).abs().max() > 1e-3
    torch.testing.assert_close(torch.cat(parts, dim=1), full, **TOLERANCE)


@scheme
def test_no_token_sees_a_later_one(name):
    model, tokens = make_model(name), make_tokens(2, 9)
    changed = tokens.clone()
    changed[:, 6] = (changed[:, 6] + 1) % VOCAB
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :6], after[:, :6], **TOLERANCE)
    assert (before[:, 6:] - after[:, 6:]).abs().amax(dim=(0, 2)).min() > 1e-4


@scheme
def test_encoder_knows_order_only_through_its_scheme(name):
    torch.manual_seed(3)
    position = new_position(name, causal=False)
    encoder = Encoder(VOCAB, D_MODEL, LAYERS, HEADS, head_dim=HEAD_DIM, position=position).to(F64)
    tokens, order = make_tokens(2, 7), torch.tensor([3, 0, 6, 1, 5, 2, 4])
    with torch.no_grad():
        permuted = encoder(tokens)[:, order]
        apart = (encoder(tokens[:, order]) - permuted).abs().max()
        moved = encoder(tokens[:, order], positions=order.unsqueeze(0))
    assert (apart < 1e-10) == (name == "none")
    torch.testing.assert_close(moved, permuted, **TOLERANCE)  # tokens took their positions along


@scheme
@pytest.mark.parametrize("norm_placement", ["pre", "post"])
def test_encoder_ignores_padding_on_any_side(name, norm_placement):
    torch.manual_seed(3)
    position = new_position(name, causal=False)
    encoder = Encoder(
        VOCAB,
        D_MODEL,
        LAYERS,
        HEADS,
        head_dim=HEAD_DIM,
        position=position,
        norm_placement=norm_placement,
    ).to(F64)
    tokens = make_tokens(1, 8)
    with torch.no_grad():
        alone = encoder(tokens[:, 2:6])
        for part in (slice(2, 8), slice(0, 6), slice(0, 8)):
            mask = torch.zeros(1, 8, dtype=torch.bool)
            mask[:, 2:6] = True
            padded = encoder(tokens[:, part], mask=mask[:, part])
            real = padded[:, mask[0, part]]
            torch.testing.assert_close(real, alone, **TOLERANCE)


@scheme
@pytest.mark.parametrize("n_kv_heads", [1, 4])
@pytest.mark.parametrize("norm_placement", ["pre", "post"])
def test_sequence_to_sequence_with_both_caches(name, n_kv_heads, norm_placement):
    model = make_seq2seq(name, n_kv_heads=n_kv_heads, norm_placement=norm_placement, value_dim=5)
    source, target = make_tokens(2, 5, VOCAB - 2, seed=1), make_tokens(2, 9)
    source_mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    target_mask = torch.arange(9) >= torch.tensor([[0], [4]])
    with torch.no_grad():
        context = model.encoder(source, mask=source_mask)
        alone = [
            model(source[:1], target[:1]),
            model(source[1:, :3], target[1:, 4:]),
        ]
        full = model(source, target, source_mask=source_mask, target_mask=target_mask)
        state = model.decoder.decode_state(2, 9, context=context, context_mask=source_mask)
    cached = in_chunks(model.decoder, target, UNEVEN_CHUNKS, target_mask, state)
    for logits in (full, cached):
        torch.testing.assert_close(logits[:1], alone[0], **TOLERANCE)
        torch.testing.assert_close(logits[1:, 4:], alone[1], **TOLERANCE)


@scheme
def test_generation_is_the_same_with_and_without_a_cache_and_row_by_row(name):
    model = make_model(name, n_kv_heads=2)
    prompt, mask = make_tokens(2, 5), torch.arange(5) >= torch.tensor([[0], [3]])
    cached = generate(model, prompt, 8, prompt_mask=mask)
    assert torch.equal(cached, generate(model, prompt, 8, prompt_mask=mask, use_cache=False))
    assert torch.equal(cached[:1], generate(model, prompt[:1], 8))
    assert torch.equal(cached[1:], generate(model, prompt[1:, 3:], 8))
    assert len(cached.unique()) > 2  # a text, not one token again and again

    model = make_seq2seq(name)
    source = make_tokens(2, 5, VOCAB - 2, seed=1)
    source_mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    kwargs = {"encoder_input": source, "encoder_mask": source_mask}
    cached = generate(model, prompt[:, :1], 8, **kwargs)
    assert torch.equal(cached, generate(model, prompt[:, :1], 8, use_cache=False, **kwargs))
    alone = generate(model, prompt[1:, :1], 8, encoder_input=source[1:, :3])
    assert torch.equal(cached[1:], alone)


def test_frequencies_that_change_while_decoding_break_the_cache():
    """Dynamic NTK that follows the length: cached keys keep the frequencies of their own time."""
    model, tokens = make_model("rope-dynamic"), make_tokens(2, 9)

    def read(length):
        model.position.scaling = rope.DynamicNTKScaling(2.0, original_max_len=4, length=length)

    read(9)
    with torch.no_grad():
        full = model(tokens)
        state, logits = model.decode_state(2, 9), []
        for m in range(9):
            read(m + 1)
            logits.append(model(tokens[:, m : m + 1], state=state))
    assert (torch.cat(logits, dim=1)[:, -1] - full[:, -1]).abs().max() > 1e-3


on_a_gpu = pytest.param(
    "cuda",
    marks=[
        pytest.mark.cuda,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    ],
)


@pytest.mark.parametrize("device", ["cpu", on_a_gpu])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@scheme
def test_cached_fused_and_readable_agree_in_narrow_formats(name, dtype, device):
    """In bfloat16 the rounding is measured: at most 2.5 times the error of the full forward."""
    model, tokens = make_model(name, n_kv_heads=2).to(device, dtype), make_tokens(2, 9).to(device)
    with torch.no_grad():
        full = model(tokens)
        assert full.dtype == dtype
        readable = model(tokens, return_weights=True)[0].double()
        exact = model.double()(tokens)  # the same rounded weights
        model.to(dtype)
    cached = in_chunks(model, tokens, UNEVEN_CHUNKS).double()
    off = {
        way: ((logits - exact).norm() / exact.norm()).item()
        for way, logits in (("full", full.double()), ("cached", cached), ("readable", readable))
    }
    most = 1e-5 if dtype == torch.float32 else 2.5 * off["full"]
    assert most < 0.05
    assert max(off.values()) <= most, off


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@scheme
def test_on_a_gpu(name):
    model, tokens = make_model(name, n_kv_heads=2).float(), make_tokens(2, 9)
    with torch.no_grad():
        expected = model(tokens)
    model, tokens = model.cuda(), tokens.cuda()
    cached = in_chunks(model, tokens, UNEVEN_CHUNKS).cpu()
    torch.testing.assert_close(cached, expected, rtol=1e-3, atol=1e-3)
    mask = torch.arange(5, device="cuda") >= torch.tensor([[0], [3]], device="cuda")
    prompt = tokens[:, :5]
    assert torch.equal(
        generate(model.double(), prompt, 20, prompt_mask=mask),
        generate(model, prompt, 20, prompt_mask=mask, use_cache=False),
    )
