"""lib.sinusoidal: by hand, against a loop written from the paper, the shift, errors, dtypes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.sinusoidal import angular_frequencies, shift_matrix, sinusoidal_encoding, wavelengths

POSITIONS = torch.tensor([[0, 17, 3, 941], [5, 5, 2048, 1]])
EXACT = {"rtol": 0, "atol": 1e-12}


def encode(positions, dim, **options):
    return sinusoidal_encoding(positions, dim, dtype=torch.float64, **options)


def shift(offset, dim, **options):
    return shift_matrix(offset, dim, dtype=torch.float64, **options)


def test_four_components_by_hand():
    # base 100 and dim 4: frequencies 1 and 1/10.
    expected = [[math.sin(3), math.cos(3), math.sin(0.3), math.cos(0.3)], [0.0, 1.0, 0.0, 1.0]]
    result = encode(torch.tensor([3, 0]), 4, base=100.0)
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.float64), **EXACT)


def test_loop_from_the_paper():
    dim = 10
    expected = torch.empty(2, 4, dim, dtype=torch.float64)
    for row in range(2):
        for column in range(4):
            position = POSITIONS[row, column].item()
            for i in range(dim // 2):
                expected[row, column, 2 * i] = math.sin(position / 10000 ** (2 * i / dim))
                expected[row, column, 2 * i + 1] = math.cos(position / 10000 ** (2 * i / dim))
    torch.testing.assert_close(encode(POSITIONS, dim), expected, **EXACT)


def test_wavelengths_by_hand():
    expected = [2 * math.pi * 10000 ** (2 * i / 64) for i in range(32)]
    result = wavelengths(64)
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.float64))
    assert 47_000 < result[-1] < 47_200  # 2π · 10000^(62/64), well short of 2π · 10000 = 62,832


def test_a_pair_repeats_after_its_wavelength():
    lengths, start_at = wavelengths(6), torch.tensor([2.5], dtype=torch.float64)
    for pair in range(3):
        columns = slice(2 * pair, 2 * pair + 2)
        start = encode(start_at, 6)[..., columns]
        later = encode(start_at + lengths[pair], 6)[..., columns]
        halfway = encode(start_at + lengths[pair] / 2, 6)[..., columns]
        torch.testing.assert_close(later, start, rtol=0, atol=1e-10)
        torch.testing.assert_close(halfway, -start, rtol=0, atol=1e-10)


offsets = st.integers(-5000, 5000)


@given(position=st.integers(0, 5000), offset=offsets, pairs=st.integers(1, 9))
def test_shift_moves_every_encoding(position, offset, pairs):
    dim = 2 * pairs
    here, there = encode(torch.tensor([position, position + offset]), dim)
    torch.testing.assert_close(shift(offset, dim) @ here, there, rtol=0, atol=1e-10)


@given(a=offsets, b=offsets, pairs=st.integers(1, 9))
def test_shifts_form_a_group(a, b, pairs):
    dim = 2 * pairs
    close = {"rtol": 0, "atol": 1e-10}
    torch.testing.assert_close(shift(a, dim) @ shift(b, dim), shift(a + b, dim), **close)
    torch.testing.assert_close(shift(a, dim).T, shift(-a, dim), **close)


def test_shift_is_block_diagonal():
    result = shift(7, 6)
    blocks = torch.block_diag(*[torch.ones(2, 2, dtype=torch.bool)] * 3)
    assert torch.equal(result != 0, blocks)


def test_the_sign_of_a_block():
    # dim 2: frequency 1. A quarter of a turn on, (sin, cos) goes from (0, 1) to (1, 0).
    moved = shift(math.pi / 2, 2) @ torch.tensor([0.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(moved, torch.tensor([1.0, 0.0], dtype=torch.float64), **EXACT)


@pytest.mark.parametrize("dim", [-2, 0, 1, 7])
def test_dim_must_be_even(dim):
    for function in (wavelengths, angular_frequencies):
        with pytest.raises(ValueError, match=f"even and at least 2.*dim={dim}"):
            function(dim)
    with pytest.raises(ValueError, match=f"even and at least 2.*dim={dim}"):
        sinusoidal_encoding(POSITIONS, dim)
    with pytest.raises(ValueError, match=f"even and at least 2.*dim={dim}"):
        shift_matrix(1, dim)


@pytest.mark.parametrize("base", [1.0, 0.5, -3.0, float("nan")])
def test_base_must_be_above_one(base):
    with pytest.raises(ValueError, match=f"base must be above 1.*base={base}"):
        sinusoidal_encoding(POSITIONS, 4, base=base)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    # Half a unit in the last place of a number up to 1.
    [(torch.float64, 1e-15), (torch.float32, 2**-25), (torch.bfloat16, 2**-9)],
)
def test_only_the_result_is_rounded(dtype, tolerance):
    far = torch.tensor([1_000_003, 16_777_217])  # the second is no float32 number
    exact = torch.tensor(
        [
            [f(p / 10000 ** (2 * i / 8)) for i in range(4) for f in (math.sin, math.cos)]
            for p in far.tolist()
        ],
        dtype=torch.float64,
    )
    result = sinusoidal_encoding(far, 8, dtype=dtype)
    assert result.dtype == dtype
    # 1e-9: the float64 phase itself, 1.7e7 radians, is rounded.
    torch.testing.assert_close(result.double(), exact, rtol=0, atol=tolerance + 4e-9)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_gives_the_same():
    on_gpu = sinusoidal_encoding(POSITIONS.cuda(), 10)
    torch.testing.assert_close(on_gpu.cpu(), sinusoidal_encoding(POSITIONS, 10), rtol=0, atol=1e-6)
    assert shift_matrix(3, 4, device="cuda").device.type == "cuda"
