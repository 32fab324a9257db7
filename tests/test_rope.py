"""lib.rope: by hand, against transformers, the identities of chapter 05, errors, dtypes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.rope import (
    DynamicNTKScaling,
    LinearScaling,
    NTKScaling,
    RopeScaling,
    YarnScaling,
    apply_rope,
    layout_permutation,
    rope_frequencies,
    rope_matrix,
    rope_tables,
)
from lib.sinusoidal import shift_matrix

LAYOUTS = ["interleaved", "half"]
BATCH, HEADS, LENGTH, DIM = 2, 3, 5, 12
POSITIONS = torch.tensor([[0, 4, 3, 511, 70], [2, 2, 9, 100, 1]])
CLOSE = {"rtol": 0, "atol": 1e-12}


def make(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def tables(positions, frequencies, **options):
    return rope_tables(positions, frequencies, dtype=torch.float64, **options)


def turn(x, position, *, layout="interleaved", base=10000.0):
    frequencies = rope_frequencies(x.shape[-1], base=base)
    return apply_rope(x, *tables(torch.tensor(position), frequencies), layout=layout)


def test_quarter_turns_by_hand():
    # Two pairs; pair 0 a quarter of a turn, pair 1 half a turn.
    cos, sin = torch.tensor([0.0, -1.0]), torch.tensor([1.0, 0.0])
    x = torch.tensor([[1.0, 2.0, 3.0, 5.0]])
    assert apply_rope(x, cos, sin).tolist() == [[-2.0, 1.0, -3.0, -5.0]]
    assert apply_rope(x, cos, sin, layout="half").tolist() == [[-3.0, -2.0, 1.0, -5.0]]


def test_tables_by_hand():
    # dim 4, base 100: frequencies 1 and 1/10.
    cos, sin = tables(torch.tensor([3, 7]), rope_frequencies(4, base=100.0), attention_factor=2.0)
    for table, function in ((cos, math.cos), (sin, math.sin)):
        expected = [[2 * function(3), 2 * function(0.3)], [2 * function(7), 2 * function(0.7)]]
        torch.testing.assert_close(table, torch.tensor(expected, dtype=torch.float64), **CLOSE)


def test_matrix_by_hand():
    cos, sin = math.cos(2), math.sin(2)
    slow_cos, slow_sin = math.cos(0.2), math.sin(0.2)
    expected = torch.tensor(
        [
            [cos, -sin, 0, 0],
            [sin, cos, 0, 0],
            [0, 0, slow_cos, -slow_sin],
            [0, 0, slow_sin, slow_cos],
        ],
        dtype=torch.float64,
    )
    frequencies = rope_frequencies(4, base=100.0)
    result = rope_matrix(2, frequencies, dtype=torch.float64)
    torch.testing.assert_close(result, expected, **CLOSE)
    order = [0, 2, 1, 3]
    result = rope_matrix(2, frequencies, layout="half", dtype=torch.float64)
    torch.testing.assert_close(result, expected[order][:, order], **CLOSE)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_applying_is_multiplying_by_the_matrix(layout):
    x = make(BATCH, HEADS, LENGTH, DIM)
    frequencies = rope_frequencies(DIM)
    matrices = rope_matrix(POSITIONS, frequencies, layout=layout, dtype=torch.float64)
    expected = torch.einsum("blij,bhlj->bhli", matrices, x)
    result = apply_rope(x, *tables(POSITIONS[:, None], frequencies), layout=layout)
    torch.testing.assert_close(result, expected, **CLOSE)


def test_complex_numbers_say_the_same():
    x = make(BATCH, HEADS, LENGTH, DIM)
    angles = POSITIONS[:, None, :, None] * 10000.0 ** (-torch.arange(0, DIM, 2).double() / DIM)
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(
        torch.ones_like(angles), angles
    )
    result = apply_rope(x, *tables(POSITIONS[:, None], rope_frequencies(DIM)))
    torch.testing.assert_close(result, torch.view_as_real(turned).flatten(-2), **CLOSE)


def test_half_is_llama():
    from transformers.models.llama.configuration_llama import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = LlamaConfig(
        hidden_size=HEADS * DIM,
        num_attention_heads=HEADS,
        head_dim=DIM,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )
    q, k = make(BATCH, HEADS, LENGTH, DIM).float(), make(BATCH, 1, LENGTH, DIM, seed=1).float()
    cos, sin = LlamaRotaryEmbedding(config)(q, POSITIONS)
    expected = apply_rotary_pos_emb(q, k, cos, sin)
    frequencies = rope_frequencies(DIM, base=500.0)
    for x, llama in zip((q, k), expected, strict=True):
        result = apply_rope(x, *rope_tables(POSITIONS[:, None], frequencies), layout="half")
        # Theirs has float32 angles: at position 511 off by up to 511 · 2^−24 radians.
        torch.testing.assert_close(result, llama, rtol=0, atol=1e-4)
        assert (result - llama)[..., POSITIONS[1] < 10, :][1].abs().max() < 5e-6


def test_interleaved_is_gpt_j():
    from transformers.models.gptj.modeling_gptj import (
        apply_rotary_pos_emb,
        create_sinusoidal_positions,
    )

    x = make(BATCH, LENGTH, HEADS, DIM).float()  # its order of dimensions
    sin, cos = create_sinusoidal_positions(600, DIM)[POSITIONS].chunk(2, dim=-1)
    expected = apply_rotary_pos_emb(x, sin, cos).transpose(1, 2)
    result = apply_rope(x.transpose(1, 2), *rope_tables(POSITIONS[:, None], rope_frequencies(DIM)))
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-4)
    assert (result - expected)[1, :, :3].abs().max() < 5e-6


def theirs(kind, dim, base, max_len, seq_len=None, **parameters):
    """Frequencies and attention factor that transformers works out (in float32)."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=2 * dim,
        num_attention_heads=2,
        head_dim=dim,
        max_position_embeddings=max_len,
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    return ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=seq_len)


@pytest.mark.parametrize("dim", [8, 64, 96])
@pytest.mark.parametrize("base", [10000.0, 500000.0])
@pytest.mark.parametrize("factor", [1.0, 2.5, 8.0])
def test_scalings_are_those_of_transformers(dim, base, factor):
    def check(scaling, kind, max_len, **options):
        expected, attention_factor = theirs(kind, dim, base, max_len, factor=factor, **options)
        result = rope_frequencies(dim, base=base, scaling=scaling)
        torch.testing.assert_close(result, expected.double(), rtol=2e-6, atol=0)
        assert scaling.attention_factor == pytest.approx(attention_factor, rel=1e-12)

    check(LinearScaling(factor), "linear", 512)
    for length in (100, 512, 513, 5000):
        check(DynamicNTKScaling(factor, 512, length), "dynamic", 512, seq_len=length)
    # 100: the ramp would begin before pair 0; 200,000: it would end behind the last pair.
    for trained in (100, 300, 4096, 200_000):
        options = {"original_max_position_embeddings": trained}
        check(YarnScaling(factor, trained), "yarn", 9000, **options)
        check(YarnScaling(factor, trained, truncate=False), "yarn", 9000, truncate=False, **options)
        check(
            YarnScaling(factor, trained, 20.0, 2.0),
            "yarn",
            9000,
            beta_fast=20,
            beta_slow=2,
            **options,
        )


def test_ntk_slows_the_ends_as_it_says():
    plain, scaled = rope_frequencies(16), rope_frequencies(16, scaling=NTKScaling(4.0))
    assert scaled[0] == plain[0] == 1.0
    torch.testing.assert_close(scaled[-1], plain[-1] / 4.0)
    # Dynamic, read at twice the training length with factor f, stretches by 2f − (f − 1).
    dynamic = rope_frequencies(16, scaling=DynamicNTKScaling(3.0, 100, 200))
    torch.testing.assert_close(dynamic, scaled)


def test_yarn_keeps_fast_pairs_and_interpolates_slow_ones():
    plain = rope_frequencies(64)
    scaled = rope_frequencies(64, scaling=YarnScaling(8.0, 2048))
    turns = 2048 * plain / (2 * math.pi)
    ratio = plain / scaled
    assert torch.all(ratio[turns > 40] == 1.0)
    torch.testing.assert_close(ratio[turns < 0.8], torch.full_like(ratio[turns < 0.8], 8.0))
    assert torch.all(ratio.diff() >= 0)


@pytest.mark.parametrize("max_len", [3, 10**9, 10**12])
def test_yarn_far_from_the_ramp(max_len):
    # Trained on less than a turn of all but pair 0, or on many turns of every pair.
    ratio = rope_frequencies(16) / rope_frequencies(16, scaling=YarnScaling(4.0, max_len))
    assert torch.all(ratio[1:] == (4.0 if max_len == 3 else 1.0))
    assert ratio[0] == 1.0


vectors = st.integers(0, 10_000)
positions = st.integers(-3000, 3000)
layouts = st.sampled_from(LAYOUTS)


@given(seed=vectors, m=positions, layout=layouts, pairs=st.integers(1, 6))
def test_norm_is_kept(seed, m, layout, pairs):
    x = make(4, 2 * pairs, seed=seed)
    turned = turn(x, m, layout=layout)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))


@given(seed=vectors, m=positions, n=positions, shift=positions, layout=layouts)
def test_scores_depend_on_the_difference_alone(seed, m, n, shift, layout):
    q, k = make(2, 8, seed=seed)
    here = turn(q, m, layout=layout) @ turn(k, n, layout=layout)
    moved = turn(q, m + shift, layout=layout) @ turn(k, n + shift, layout=layout)
    at_zero = q @ turn(k, n - m, layout=layout)
    torch.testing.assert_close(torch.stack((moved, at_zero)), here.expand(2), rtol=0, atol=1e-9)


def test_scores_do_depend_on_the_difference():
    q, k = make(2, 8)
    assert not torch.allclose(q @ turn(k, 3), q @ turn(k, 4))
    assert not torch.allclose(q @ turn(k, 3), q @ turn(k, -3))


@given(m=positions, n=positions, layout=layouts)
def test_matrices_form_a_group(m, n, layout):
    def matrix(position):
        return rope_matrix(position, rope_frequencies(10), layout=layout, dtype=torch.float64)

    close = {"rtol": 0, "atol": 1e-10}
    torch.testing.assert_close(matrix(m) @ matrix(n), matrix(m + n), **close)
    torch.testing.assert_close(matrix(m).T @ matrix(n), matrix(n - m), **close)
    torch.testing.assert_close(matrix(0), torch.eye(10, dtype=torch.float64), **close)


@given(m=positions)
def test_chapter_3s_shift_is_the_transpose(m):
    shift = shift_matrix(m, 10, dtype=torch.float64)
    matrix = rope_matrix(m, rope_frequencies(10), dtype=torch.float64)
    torch.testing.assert_close(matrix.T, shift, **CLOSE)


@given(seed=vectors, m=positions, pairs=st.integers(1, 6))
def test_layouts_differ_by_the_permutation(seed, m, pairs):
    x, p = make(3, 2 * pairs, seed=seed), layout_permutation(2 * pairs)
    torch.testing.assert_close(turn(x[..., p], m, layout="half"), turn(x, m)[..., p], **CLOSE)
    assert torch.equal(x[..., p][..., p.argsort()], x)


def test_mixed_layouts_are_right_at_position_0_only():
    q, k = make(2, 8)
    for m, n in ((0, 0), (5, 5), (5, 2)):
        right = turn(q, m) @ turn(k, n)
        mixed = turn(q, m) @ turn(k, n, layout="half")
        assert torch.allclose(right, mixed) == (m == n == 0)


def test_caller_errors():
    x = make(LENGTH, DIM)
    cos, sin = tables(POSITIONS[0], rope_frequencies(DIM))
    with pytest.raises(ValueError, match=r"floating point, got torch\.int64"):
        apply_rope(torch.ones(5, 12).long(), cos, sin)
    with pytest.raises(ValueError, match='"interleaved" or "half", got \'pairs\''):
        apply_rope(x, cos, sin, layout="pairs")
    with pytest.raises(ValueError, match="'neox'"):
        rope_matrix(1, rope_frequencies(DIM), layout="neox")
    with pytest.raises(ValueError, match=r"x of shape \(5, 10\).*5 columns.*\(5, 6\)"):
        apply_rope(x[:, :10], cos, sin)
    with pytest.raises(ValueError, match=r"x of shape \(4, 12\).*cos \(5, 6\)"):
        apply_rope(x[:4], cos, sin)
    with pytest.raises(ValueError, match=r"x of shape \(1, 12\).*cos \(5, 6\)"):
        apply_rope(x[:1], cos, sin)  # would come back with five rows
    with pytest.raises(ValueError, match=r"cos \(5, 6\) and sin \(4, 6\)"):
        apply_rope(x, cos, sin[:4])
    with pytest.raises(ValueError, match=r"vector, got shape \(1, 6\)"):
        rope_tables(POSITIONS, rope_frequencies(DIM)[None])
    for function in (rope_frequencies, layout_permutation):
        with pytest.raises(ValueError, match=r"even and at least 2.*dim=7"):
            function(7)
    with pytest.raises(ValueError, match=r"base=0\.5"):
        rope_frequencies(8, base=0.5)


@pytest.mark.parametrize(
    ("make_scaling", "message"),
    [
        (lambda: LinearScaling(0.5), r"factor=0\.5"),
        (lambda: NTKScaling(math.inf), "factor=inf"),
        (lambda: DynamicNTKScaling(2.0, 0, 7), "original_max_len=0 and length=7"),
        (lambda: YarnScaling(2.0, 0), "1 or more, got 0"),
        (lambda: YarnScaling(2.0, 64, 1.0, 32.0), r"beta_fast=1\.0 and beta_slow=32\.0"),
        (lambda: rope_frequencies(2, scaling=NTKScaling(2.0)), "4 or more.*got 2"),
        (lambda: rope_frequencies(8, scaling=RopeScaling(2.0)), r"RopeScaling\(factor=2\.0\)"),
        (lambda: rope_frequencies(8, scaling={"factor": 2.0}), "'factor': 2.0"),
    ],
)
def test_scaling_errors(make_scaling, message):
    with pytest.raises(ValueError, match=message):
        make_scaling()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("dtype", "rounding"),
    # For bfloat16 half a unit in the last place: the result is rounded once, nothing before it.
    [(torch.float64, 1e-12), (torch.float32, 1e-6), (torch.bfloat16, 2**-8)],
)
def test_dtypes(dtype, rounding, layout):
    x = make(BATCH, HEADS, LENGTH, DIM).to(dtype)
    frequencies = rope_frequencies(DIM)
    exact = apply_rope(x.double(), *tables(POSITIONS[:, None], frequencies), layout=layout)
    table_dtype = torch.promote_types(dtype, torch.float32)
    cos, sin = rope_tables(POSITIONS[:, None], frequencies, dtype=table_dtype)
    result = apply_rope(x, cos, sin, layout=layout)
    assert result.dtype == dtype
    assert result.shape == x.shape
    torch.testing.assert_close(result.double(), exact, rtol=rounding, atol=1e-6)


def test_far_positions_keep_their_angle():
    far = 10_000_019
    cos, sin = rope_tables(torch.tensor([far]), rope_frequencies(6))
    for pair in range(3):
        angle = far / 10000 ** (2 * pair / 6)  # float64: right to 2e-9 radians
        assert cos[0, pair].item() == pytest.approx(math.cos(angle), abs=1e-7)
        assert sin[0, pair].item() == pytest.approx(math.sin(angle), abs=1e-7)


def test_input_is_left_alone_and_gradient_turns_back():
    x = make(LENGTH, DIM).requires_grad_()
    before, upstream = x.detach().clone(), make(LENGTH, DIM, seed=2)
    cos, sin = tables(POSITIONS[0], rope_frequencies(DIM))
    apply_rope(x, cos, sin).backward(upstream)
    assert torch.equal(x.detach(), before)
    torch.testing.assert_close(x.grad, apply_rope(upstream, cos, -sin), **CLOSE)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_may_lie_in_any_order(layout):
    """A part of heads of odd width, and tokens and heads swapped: nothing lies in pairs."""
    x = make(BATCH, LENGTH, HEADS, DIM + 1)[..., 1:].transpose(1, 2)
    cos, sin = tables(POSITIONS.unsqueeze(1), rope_frequencies(DIM))
    expected = apply_rope(x.contiguous(), cos, sin, layout=layout)
    torch.testing.assert_close(apply_rope(x, cos, sin, layout=layout), expected, **CLOSE)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu(dtype):
    x = make(BATCH, HEADS, LENGTH, DIM).to(dtype)
    yarn = YarnScaling(4.0, 64)
    results = []
    for device in ("cpu", "cuda"):
        frequencies = rope_frequencies(DIM, scaling=yarn, device=device)
        cos, sin = rope_tables(POSITIONS[:, None].to(device), frequencies)
        results.append(apply_rope(x.to(device), cos, sin, layout="half").cpu())
    torch.testing.assert_close(*results, rtol=1e-2 if dtype == torch.bfloat16 else 1e-6, atol=1e-6)
    assert layout_permutation(4, device="cuda").is_cuda
