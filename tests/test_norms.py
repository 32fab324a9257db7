"""Tests of :mod:`lib.norms`."""

import pytest
import torch
from torch.nn import functional as F

from lib.norms import LayerNorm, RMSNorm, layer_norm, rms_norm

F64 = torch.float64


def make(*shape, dtype=F64, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64).to(dtype)


# --- by hand


def test_layer_norm_by_hand():
    # mean 4, biased variance 5, plus eps 4: the root of 9 is 3
    x = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=F64)
    weight = torch.tensor([1.0, 1.0, 1.0, 2.0], dtype=F64)
    bias = torch.tensor([0.0, 10.0, 0.0, 0.0], dtype=F64)
    expected = torch.tensor([-1.0, 10 - 1 / 3, 1 / 3, 2.0], dtype=F64)
    torch.testing.assert_close(layer_norm(x, weight, bias, eps=4.0), expected)


def test_rms_norm_by_hand():
    # mean square 25, plus eps 11: the root of 36 is 6; the mean 4 stays in
    x = torch.tensor([1.0, 1.0, 7.0, 7.0], dtype=F64)
    weight = torch.tensor([6.0, 12.0, 6.0, 6.0], dtype=F64)
    expected = torch.tensor([1.0, 2.0, 7.0, 7.0], dtype=F64)
    torch.testing.assert_close(rms_norm(x, weight, eps=11.0), expected)


# --- against torch's kernels, and the modules against the functions


@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 6)], ids=str)
@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.5])
def test_functions_match_torch_and_modules(shape, eps):
    x, weight, bias = make(*shape), make(6, seed=1), make(6, seed=2)
    for ours, torchs in [
        (layer_norm(x, weight, bias, eps=eps), F.layer_norm(x, (6,), weight, bias, eps)),
        (layer_norm(x, eps=eps), F.layer_norm(x, (6,), eps=eps)),
        (rms_norm(x, weight, eps=eps), F.rms_norm(x, (6,), weight, eps)),
        (rms_norm(x, eps=eps), F.rms_norm(x, (6,), eps=eps)),
    ]:
        torch.testing.assert_close(ours, torchs, rtol=1e-12, atol=1e-12)
    layer, rms = LayerNorm(6, eps=eps).to(F64), RMSNorm(6, eps=eps).to(F64)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
        rms.weight.copy_(weight)
    torch.testing.assert_close(layer(x), layer_norm(x, weight, bias, eps=eps), rtol=1e-12, atol=0)
    torch.testing.assert_close(rms(x), rms_norm(x, weight, eps=eps), rtol=1e-12, atol=0)


@pytest.mark.parametrize("module", [LayerNorm, RMSNorm])
def test_defaults_of_module_and_function_agree(module):
    x = 1e-3 * make(3, 6)  # small, so that eps shows
    function = layer_norm if module is LayerNorm else rms_norm
    torch.testing.assert_close(module(6).to(F64)(x), function(x), rtol=1e-10, atol=0)


# --- properties


def test_each_token_is_normalized_by_itself():
    x = 3.0 + 5.0 * make(2, 3, 8)
    y = layer_norm(x, eps=0.0)
    torch.testing.assert_close(y.mean(-1), torch.zeros(2, 3, dtype=F64))
    torch.testing.assert_close(y.square().mean(-1), torch.ones(2, 3, dtype=F64))
    torch.testing.assert_close(rms_norm(x, eps=0.0).square().mean(-1), torch.ones(2, 3, dtype=F64))
    changed = x.clone()
    changed[1, 2] = 1e3
    for norm in (layer_norm, rms_norm):
        same = (norm(changed) == norm(x)).all(-1)
        assert same.tolist() == [[True, True, True], [True, True, False]]


def test_what_each_norm_does_not_see():
    """LayerNorm is blind to shift and scale, RMSNorm to scale alone."""
    x = make(4, 8)
    torch.testing.assert_close(layer_norm(3 * x + 2, eps=0.0), layer_norm(x, eps=0.0))
    torch.testing.assert_close(rms_norm(3 * x, eps=0.0), rms_norm(x, eps=0.0))
    assert not torch.allclose(rms_norm(x + 2, eps=0.0), rms_norm(x, eps=0.0))


def test_gradients():
    x, weight, bias = (make(*s).requires_grad_() for s in ((2, 5), (5,), (5,)))
    torch.autograd.gradcheck(lambda *a: layer_norm(*a, eps=1e-3), (x, weight, bias))
    torch.autograd.gradcheck(lambda *a: rms_norm(*a, eps=1e-3), (x, weight))


# --- errors


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: layer_norm(torch.ones(2, 3, dtype=torch.int64)), "got torch.int64"),
        (lambda: rms_norm(torch.ones(())), r"shape \(\) has no features"),
        (lambda: rms_norm(torch.ones(2, 0)), r"shape \(2, 0\) has no features"),
        (lambda: layer_norm(make(2, 3), make(4)), r"weight has shape \(4,\) but x has 3"),
        (lambda: layer_norm(make(2, 3), make(3), make(1)), r"bias has shape \(1,\) but x has 3"),
        (lambda: rms_norm(make(2, 3), make(3).to("meta")), "weight is on meta but x is on cpu"),
        (lambda: LayerNorm(4)(torch.ones(2, 3)), r"weight has shape \(4,\) but x has 3"),
        (lambda: RMSNorm(4)(torch.ones(2, 3)), r"weight has shape \(4,\) but x has 3"),
    ],
)
def test_bad_input_is_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


# --- dtypes and devices


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float16, 1e-3), (torch.bfloat16, 8e-3)])
def test_half_precision_is_computed_wide(dtype, rtol):
    """4000 features of 300: their squares overflow float16, their sum loses bits in bfloat16.

    Tolerance: one rounding of the result, 11 and 8 bits.
    """
    x = (300 + 30 * make(2, 4000)).to(dtype)
    for norm, module in ((layer_norm, LayerNorm(4000)), (rms_norm, RMSNorm(4000))):
        expected = norm(x.double())
        for y in (norm(x), module.to(dtype)(x)):
            assert y.dtype == dtype
            torch.testing.assert_close(y.double(), expected, rtol=rtol, atol=1e-4)


@pytest.mark.parametrize("weight_dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, F64])
def test_a_module_takes_inputs_of_another_dtype(dtype, weight_dtype):
    """Computed in float32 at least, returned in the input's dtype, and torch does not warn."""
    x = make(2, 5).to(dtype)
    for norm, module in ((layer_norm, LayerNorm(5)), (rms_norm, RMSNorm(5))):
        torch.nn.init.normal_(module.weight)
        module.to(weight_dtype)
        y = module(x)
        assert y.dtype == dtype
        expected = norm(x.double(), module.weight.double(), eps=module.eps)
        rtol = 8e-3 if dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(y.double(), expected, rtol=rtol, atol=1e-5)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu(dtype):
    x = make(4, 64, dtype=dtype).cuda()
    for norm, module in ((layer_norm, LayerNorm(64)), (rms_norm, RMSNorm(64))):
        torch.testing.assert_close(module.to("cuda", dtype)(x), norm(x))
