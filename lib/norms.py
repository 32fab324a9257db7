r"""Layer normalization and root-mean-square normalization (chapter 08).

Both work on the last dimension of ``x``, the features of **one token**, and on nothing else:
no other token, no other row of the batch, nothing remembered from earlier batches.

Conventions:

- The variance is the biased one: the sum of squares is divided by d, not by d − 1.
- ε is inside the root.
- Statistics and result are computed in float32 or wider, and the result is cast back.

The functions are the formulas, line by line. The modules pass the same work to torch's fused
kernels, where the input has the weight's dtype; a test holds the two against each other.

Sources: Ba et al., *Layer Normalization*, 2016, arXiv:1607.06450, section 3; Zhang and Sennrich,
*Root Mean Square Layer Normalization*, 2019, arXiv:1910.07467, section 4.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["LayerNorm", "RMSNorm", "layer_norm", "rms_norm"]


def layer_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5
) -> Tensor:
    r"""Give each token mean 0 and variance 1 over its features (``eq-layer-norm``, chapter 08).

    .. math::

        &y = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \odot g + b, \\
        &\mu = \frac1d \sum_i x_i, \\
        &\sigma^2 = \frac1d \sum_i (x_i - \mu)^2

    Args:
        x: ``(..., d)``.
        weight: g, ``(d,)``; all ones when not given.
        bias: b, ``(d,)``; all zeros when not given.
        eps: ε, keeps the root away from 0.

    Returns:
        ``(..., d)``, in the dtype of ``x``.

    Raises:
        ValueError: if ``x`` is not floating point, has no features, or sizes do not fit.

    Example:
        >>> layer_norm(torch.tensor([1.0, 3.0, 5.0, 7.0]), eps=0.0)
        tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """
    _check(x, weight=weight, bias=bias)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))  # (..., d)
    centred = wide - wide.mean(dim=-1, keepdim=True)  # (..., d)
    variance = centred.square().mean(dim=-1, keepdim=True)  # (..., 1)
    y = centred * torch.rsqrt(variance + eps)  # (..., d)
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y.to(x.dtype)


def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    r"""Give each token root mean square 1 over its features (``eq-rms-norm``, chapter 08).

    .. math::

        y = \frac{x}{\sqrt{\frac1d \sum_i x_i^2 + \varepsilon}} \odot g

    The mean is not taken out, and nothing is added afterwards.

    Args:
        x: ``(..., d)``.
        weight: g, ``(d,)``; all ones when not given.
        eps: ε, keeps the root away from 0.

    Returns:
        ``(..., d)``, in the dtype of ``x``.

    Raises:
        ValueError: if ``x`` is not floating point, has no features, or sizes do not fit.

    Example:
        >>> rms_norm(torch.tensor([1.0, -1.0, 7.0, 7.0]), eps=0.0)
        tensor([ 0.2000, -0.2000,  1.4000,  1.4000])
    """
    _check(x, weight=weight)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))  # (..., d)
    mean_square = wide.square().mean(dim=-1, keepdim=True)  # (..., 1)
    y = wide * torch.rsqrt(mean_square + eps)  # (..., d)
    if weight is not None:
        y = y * weight
    return y.to(x.dtype)


class LayerNorm(nn.Module):
    """:func:`layer_norm` with a learned weight and bias, through torch's fused kernel.

    Args:
        d_model: number of features.
        eps: ε.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """``(..., d_model)`` → ``(..., d_model)``; dtype and errors as in :func:`layer_norm`."""
        weight = self.weight
        if _fits_kernel(x, weight):
            return F.layer_norm(x, weight.shape, weight, self.bias, self.eps)
        return layer_norm(x, weight, self.bias, eps=self.eps)


class RMSNorm(nn.Module):
    """:func:`rms_norm` with a learned weight, through torch's fused kernel.

    Args:
        d_model: number of features.
        eps: ε.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """``(..., d_model)`` → ``(..., d_model)``; dtype and errors as in :func:`rms_norm`."""
        weight = self.weight
        if _fits_kernel(x, weight):
            return F.rms_norm(x, weight.shape, weight, self.eps)
        return rms_norm(x, weight, eps=self.eps)


def _fits_kernel(x: Tensor, weight: Tensor) -> bool:
    """Whether the kernel accepts these tensors; the function handles the others."""
    return (
        x.dtype == weight.dtype
        and x.shape[-1:] == weight.shape != (0,)
        and x.device == weight.device
    )


def _check(x: Tensor, **parameters: Tensor | None) -> None:
    if not x.is_floating_point():
        raise ValueError(f"x must be floating point, got {x.dtype}")
    if x.dim() < 1 or x.shape[-1] == 0:
        raise ValueError(f"x of shape {tuple(x.shape)} has no features, need (..., d) with d >= 1")
    for name, parameter in parameters.items():
        if parameter is None:
            continue
        if parameter.shape != x.shape[-1:]:
            raise ValueError(
                f"{name} has shape {tuple(parameter.shape)} but x has {x.shape[-1]} features"
            )
        if parameter.device != x.device:
            raise ValueError(f"{name} is on {parameter.device} but x is on {x.device}")
