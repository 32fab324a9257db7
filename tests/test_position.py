"""lib.position: the hooks of every scheme, held against the functions; order, shift, formats.

Cached decoding and padding are in test_schemes, which runs every scheme in every model.
"""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.alibi import AlibiPosition, alibi_bias
from lib.attention import split_heads
from lib.learned import LearnedPosition
from lib.position import Position, check_positions
from lib.relative import relative_positions
from lib.rope import RotaryPosition, YarnScaling, apply_rope, rope_frequencies, rope_tables
from lib.schemes import SCHEMES, ModelSizes, make_position
from lib.shaw import ShawPosition, shaw_bias
from lib.sinusoidal import SinusoidalPosition, sinusoidal_encoding
from lib.t5 import T5Position, relative_position_bucket
from lib.transformer_xl import TransformerXLPosition, transformer_xl_scores

BATCH, HEADS, KV_HEADS, LENGTH, HEAD_DIM, D_MODEL = 2, 6, 3, 5, 8, 14
POSITIONS = torch.tensor([[3, 0, 7, 41, 12], [9, 2, 5, 1, 60]])
CLOSE = {"rtol": 0, "atol": 1e-9}
YARN = YarnScaling(4.0, 64)

SIZES = ModelSizes(D_MODEL, HEADS, HEAD_DIM, max_len=4000, causal=False)
OPTIONS = {"shaw": {"max_distance": 3}}
VARIANTS = {
    "t5 causal": lambda: T5Position(HEADS, bidirectional=False, num_buckets=8, max_distance=20),
    "rotary half": lambda: RotaryPosition(HEAD_DIM, base=50.0, layout="half"),
    "rotary partial": lambda: RotaryPosition(HEAD_DIM, rotary_dim=4, scaling=YARN),
    "alibi geometric": lambda: AlibiPosition(HEADS, rule="geometric"),
}
EACH = {n: partial(make_position, n, SIZES, **OPTIONS.get(n, {})) for n in SCHEMES} | VARIANTS
ABSOLUTE = [name for name in EACH if type(EACH[name]()).embed is not Position.embed]
RELATIVE = [name for name in EACH if name not in ("none", *ABSOLUTE)]


def make(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def build(scheme):
    """A scheme whose parameters are large enough to be seen."""
    position = EACH[scheme]().double()
    with torch.no_grad():
        for index, parameter in enumerate(position.parameters()):
            parameter.copy_(make(*parameter.shape, seed=100 + index))
    return position


@pytest.fixture(params=EACH)
def scheme(request):
    return request.param


@pytest.fixture
def position(scheme):
    return build(scheme)


def project(position, x, positions, device="cpu"):
    """Embed, and make queries and keys: (batch, heads, …) and (batch, kv_heads, …)."""
    x = position.embed(x, positions)
    w_q = make(D_MODEL, HEADS * HEAD_DIM, seed=1).to(device, x.dtype) / math.sqrt(D_MODEL)
    w_k = make(D_MODEL, KV_HEADS * HEAD_DIM, seed=2).to(device, x.dtype) / math.sqrt(D_MODEL)
    return split_heads(x @ w_q, HEADS), split_heads(x @ w_k, KV_HEADS)


def scores_of(position, x, positions):
    """The scores of all queries for all keys."""
    prepared = position.prepare(positions, positions)
    q, k = position.transform(*project(position, x, positions, x.device), prepared)
    bias = position.bias(q, k, prepared)
    keys = k.repeat_interleave(HEADS // KV_HEADS, dim=1)
    scores = q @ keys.mT * position.scale(HEAD_DIM)
    return scores if bias is None else scores + bias


# By hand


def test_the_base_does_nothing():
    position, x = Position(), make(BATCH, LENGTH, D_MODEL)
    q, k = make(BATCH, HEADS, LENGTH, HEAD_DIM), make(BATCH, KV_HEADS, LENGTH, HEAD_DIM)
    assert position.embed(x, POSITIONS) is x
    prepared = position.prepare(POSITIONS, POSITIONS)
    assert prepared is None
    assert position.transform(q, k, prepared) == (q, k)
    assert position.bias(q, k, prepared) is None
    assert position.scale(16) == 0.25
    assert position.max_len is None
    assert not position.state_dict()


def test_learned_by_hand():
    position = LearnedPosition(3, 2)
    with torch.no_grad():
        position.table.copy_(torch.tensor([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]]))
    result = position.embed(torch.ones(2, 2, 2), torch.tensor([[2, 0], [1, 1]]))
    assert result.tolist() == [[[51.0, 61.0], [11.0, 21.0]], [[31.0, 41.0], [31.0, 41.0]]]
    assert position.max_len == 3


# The modules are thin: they say what the functions say


def test_sinusoidal_adds_the_encoding():
    x = make(BATCH, LENGTH, D_MODEL)
    encoding = sinusoidal_encoding(POSITIONS, D_MODEL, base=77.0, dtype=torch.float64)
    result = SinusoidalPosition(D_MODEL, base=77.0).embed(x, POSITIONS)
    assert torch.equal(result, x + encoding)


@pytest.mark.parametrize("options", [{}, {"layout": "half", "base": 33.0, "scaling": YARN}])
def test_rotary_turns_queries_and_keys(options):
    q, k = make(BATCH, HEADS, LENGTH, HEAD_DIM), make(BATCH, KV_HEADS, LENGTH, HEAD_DIM, seed=1)
    position = RotaryPosition(HEAD_DIM, **options).double()
    prepared = position.prepare(POSITIONS, torch.cat((POSITIONS + 100, POSITIONS), dim=1))
    layout = options.pop("layout", "interleaved")
    factor = 0.1 * math.log(4.0) + 1.0 if options else 1.0
    frequencies = rope_frequencies(HEAD_DIM, **options)
    for row in range(BATCH):
        tables = rope_tables(
            POSITIONS[row], frequencies, attention_factor=factor, dtype=torch.float64
        )
        for x, result in zip((q, k), position.transform(q, k, prepared), strict=True):
            torch.testing.assert_close(result[row], apply_rope(x[row], *tables, layout=layout))


def test_partial_rotary_leaves_the_rest():
    q, k = make(BATCH, HEADS, LENGTH, HEAD_DIM), make(BATCH, KV_HEADS, LENGTH, HEAD_DIM, seed=1)
    wide, small = RotaryPosition(HEAD_DIM, rotary_dim=6), RotaryPosition(6)
    results = wide.transform(q, k, wide.prepare(POSITIONS, POSITIONS))
    prepared = small.prepare(POSITIONS, POSITIONS)
    turned = small.transform(q[..., :6], k[..., :6], prepared)
    for x, result, expected in zip((q, k), results, turned, strict=True):
        assert torch.equal(result[..., 6:], x[..., 6:])
        assert torch.equal(result[..., :6], expected)


def test_biases_are_those_of_the_functions():
    q, k = make(BATCH, HEADS, LENGTH, HEAD_DIM), make(BATCH, HEADS, 7, HEAD_DIM, seed=1)
    k_positions = torch.cat((POSITIONS[:, 3:] + 9, POSITIONS), dim=1)

    def bias_of(scheme):
        position = build(scheme)
        prepared = position.prepare(POSITIONS, k_positions)
        return position, position.bias(q, k, prepared)

    offsets = relative_positions(POSITIONS, k_positions)
    position, bias = bias_of("shaw")
    torch.testing.assert_close(bias, shaw_bias(q, position.key_table, offsets[:, None]))

    position, bias = bias_of("transformer-xl")
    scores = transformer_xl_scores(
        q, k, position.w_r.mT, position.u, position.v, POSITIONS, k_positions
    )
    torch.testing.assert_close(bias + q @ k.mT / math.sqrt(HEAD_DIM), scores)

    position, bias = bias_of("t5 causal")
    bucket = relative_position_bucket(offsets, bidirectional=False, num_buckets=8, max_distance=20)
    for head in range(HEADS):
        assert torch.equal(bias[:, head], position.table[bucket, head])

    _, bias = bias_of("alibi geometric")
    expected = alibi_bias(HEADS, POSITIONS, k_positions, rule="geometric", dtype=torch.float64)
    assert torch.equal(bias, expected)


# What every scheme must do


def test_shapes(position):
    x = make(BATCH, LENGTH, D_MODEL)
    q, k = project(position, x, POSITIONS)
    prepared = position.prepare(POSITIONS[:, 3:], POSITIONS)
    new_q, new_k = position.transform(q[:, :, 3:], k[:, :, 3:], prepared)
    assert new_q.shape == (BATCH, HEADS, 2, HEAD_DIM)
    assert new_k.shape == (BATCH, KV_HEADS, 2, HEAD_DIM)
    bias = position.bias(new_q, k, prepared)
    if bias is not None:
        assert bias.shape == (BATCH, HEADS, 2, LENGTH)
        assert bias.dtype == torch.float64


def test_tokens_carry_their_positions(position):
    """Reordering tokens together with their positions reorders the scores, nothing else."""
    x, order = make(BATCH, LENGTH, D_MODEL), torch.tensor([4, 0, 3, 1, 2])
    scores = scores_of(position, x, POSITIONS)
    moved = scores_of(position, x[:, order], POSITIONS[:, order])
    torch.testing.assert_close(moved, scores[:, :, order][..., order], **CLOSE)


def test_positions_matter_except_for_none(scheme, position):
    x = make(BATCH, LENGTH, D_MODEL)
    here, elsewhere = (scores_of(position, x, p) for p in (POSITIONS, POSITIONS.flip(-1)))
    assert torch.allclose(here, elsewhere) == (scheme == "none")


@pytest.mark.parametrize("scheme", RELATIVE)
@given(shift=st.integers(1, 3000))
def test_shifting_all_positions_changes_nothing_for_relative_schemes(scheme, shift):
    position, x = build(scheme), make(BATCH, LENGTH, D_MODEL)
    here, moved = (scores_of(position, x, p) for p in (POSITIONS, POSITIONS + shift))
    torch.testing.assert_close(moved, here, **CLOSE)


@pytest.mark.parametrize("scheme", ABSOLUTE)
@given(shift=st.integers(1, 3000))
def test_shifting_all_positions_changes_absolute_schemes(scheme, shift):
    position, x = build(scheme), make(BATCH, LENGTH, D_MODEL)
    here, moved = (scores_of(position, x, p) for p in (POSITIONS, POSITIONS + shift))
    assert not torch.allclose(moved, here)


def test_one_row_of_positions_serves_all(position):
    x = make(BATCH, LENGTH, D_MODEL)
    one_row, rows = POSITIONS[:1], POSITIONS[:1].expand(BATCH, -1)
    torch.testing.assert_close(
        scores_of(position, x, one_row), scores_of(position, x, rows), **CLOSE
    )


def test_a_shared_bias_stays_small():
    for scheme in ("t5", "alibi"):
        assert build(scheme).prepare(POSITIONS[:1], POSITIONS[:1]).shape[0] == 1


def test_every_parameter_learns(position):
    x = make(BATCH, LENGTH, D_MODEL).requires_grad_()
    scores_of(position, x, POSITIONS).softmax(-1).square().sum().backward()
    assert x.grad.abs().sum() > 0
    for name, parameter in position.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_inputs_are_left_alone(position):
    x, positions = make(BATCH, LENGTH, D_MODEL), POSITIONS.clone()
    before = x.clone()
    scores_of(position, x, positions)
    assert torch.equal(x, before)
    assert torch.equal(positions, POSITIONS)


def test_no_scheme_needs_to_save_its_tables(position):
    assert set(position.state_dict()) == {name for name, _ in position.named_parameters()}


# Errors


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (POSITIONS.double(), r"int32 or int64, got torch\.float64"),
        (POSITIONS.bool(), r"int32 or int64, got torch\.bool"),
        (POSITIONS.to(torch.uint8), r"int32 or int64, got torch\.uint8"),
        (POSITIONS[0], r"shape \(5,\) but the input needs \(2, 5\) or.*\(1, 5\)"),
        (POSITIONS.T, r"shape \(5, 2\) but the input needs \(2, 5\)"),
        (POSITIONS - 1, "negative, got -1"),
        (POSITIONS + 40, r"position 100 .*max_len=100 positions, 0 to 99"),
    ],
)
def test_positions_are_checked(positions, message):
    with pytest.raises(ValueError, match=message):
        check_positions(positions, batch=BATCH, length=LENGTH, max_len=100)


def test_good_positions_pass():
    check_positions(POSITIONS, batch=BATCH, length=LENGTH)
    check_positions(POSITIONS[:1].int(), batch=BATCH, length=LENGTH, max_len=42)
    check_positions(POSITIONS[:, :0], batch=BATCH, length=0)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: LearnedPosition(0, 4), "max_len=0"),
        (lambda: LearnedPosition(4, 0), "d_model=0"),
        (lambda: SinusoidalPosition(5), "dim=5"),
        (lambda: ShawPosition(0, max_distance=2), "head_dim=0"),
        (lambda: ShawPosition(4, max_distance=0), "max_distance=0"),
        (lambda: TransformerXLPosition(0, 4), "n_heads=0"),
        (lambda: TransformerXLPosition(3, 3), "dim=9"),
        (lambda: TransformerXLPosition(2, 4, encoding_dim=7), "dim=7"),
        (lambda: T5Position(0, bidirectional=True), "n_heads=0"),
        (lambda: T5Position(2, bidirectional=True, num_buckets=5), "num_buckets=5"),
        (lambda: T5Position(2, bidirectional=False, max_distance=9), "max_distance=9"),
        (lambda: RotaryPosition(7), "dim=7"),
        (lambda: RotaryPosition(8, rotary_dim=10), "rotary_dim=10 is above head_dim=8"),
        (lambda: RotaryPosition(8, rotary_dim=3), "dim=3"),
        (lambda: RotaryPosition(8, layout="gpt"), "'gpt'"),
        (lambda: RotaryPosition(8, base=1.0), r"base=1\.0"),
        (lambda: AlibiPosition(0), "n_heads=0"),
        (lambda: AlibiPosition(4, rule="paper"), "'paper'"),
    ],
)
def test_mistakes_are_refused_when_a_scheme_is_made(create, message):
    with pytest.raises(ValueError, match=message):
        create()


def test_rotary_refuses_heads_of_another_width():
    position, q = RotaryPosition(6, rotary_dim=2), make(1, 2, 3, 8)
    prepared = position.prepare(torch.arange(3)[None], torch.arange(3)[None])
    with pytest.raises(ValueError, match=r"head_dim=6, got queries of shape \(1, 2, 3, 8\)"):
        position.transform(q, q, prepared)


# Dtypes and devices


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.25)])
def test_dtypes(position, dtype, tolerance):
    x = make(BATCH, LENGTH, D_MODEL)
    exact = scores_of(position, x, POSITIONS)
    result = scores_of(position.to(dtype), x.to(dtype), POSITIONS)
    torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_tables_are_never_narrow(dtype):
    expected = torch.promote_types(dtype, torch.float32)
    q, k = torch.tensor([[1_000_003]]), torch.tensor([[1_000_000, 1_000_001]])
    cos, sin = RotaryPosition(4).to(dtype).prepare(q, k)
    assert cos.dtype == sin.dtype == expected
    assert cos[0, 0, 0, 0].item() == pytest.approx(math.cos(1_000_003), abs=1e-6)
    bias = AlibiPosition(1).to(dtype).prepare(q, k)
    assert bias.dtype == expected
    assert bias.flatten().tolist() == [-3 / 256, -2 / 256]
    tables = TransformerXLPosition(1, 4).to(dtype).prepare(q, k)
    assert {table.dtype for table in tables} == {expected}
    assert tables.key_encoding[0, 0, 0, 0].item() == pytest.approx(math.sin(-1e6), abs=1e-6)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu(position):
    x = make(BATCH, LENGTH, D_MODEL)
    on_cpu = scores_of(position, x, POSITIONS)
    on_gpu = scores_of(position.cuda(), x.cuda(), POSITIONS.cuda())
    torch.testing.assert_close(on_gpu.cpu(), on_cpu)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_no_hook_waits_for_the_gpu(position):
    position, positions = position.cuda(), POSITIONS.cuda()
    x = make(BATCH, LENGTH, D_MODEL).cuda()
    q, k = project(position, x, positions, "cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        position.embed(x, positions)
        prepared = position.prepare(positions, positions)
        q, k = position.transform(q, k, prepared)
        position.bias(q, k, prepared)
        with pytest.raises(RuntimeError, match="synchronizing"):
            check_positions(positions, batch=BATCH, length=LENGTH)
    finally:
        torch.cuda.set_sync_debug_mode("default")
