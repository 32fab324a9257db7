r"""Sinusoidal position encoding (chapter 03).

Pair i of an encoding of width ``dim`` turns at its own angular frequency,

.. math:: &\omega_i = \text{base}^{-2i/\text{dim}}, \\
          &i = 0, \dots, \text{dim}/2 - 1,

and holds the sine first, the cosine second:

.. math:: &\operatorname{PE}(\text{pos})_{2i} = \sin(\omega_i \text{pos}), \\
          &\operatorname{PE}(\text{pos})_{2i+1} = \cos(\omega_i \text{pos}).

Conventions:

- :math:`\omega_i \text{pos}` is a phase in radians, and :math:`2\pi/\omega_i` a wavelength in
  tokens.
- Moving on by :math:`\Delta` multiplies each pair by a matrix that does not depend on where we
  are: :math:`\operatorname{PE}(\text{pos} + \Delta) = M(\Delta) \operatorname{PE}(\text{pos})`.
  In this order, (sin, cos), a block of M is the **transpose** of the rotation by
  :math:`\omega_i \Delta` that RoPE uses (:mod:`lib.rope`): the point (sin, cos) runs clockwise as
  pos grows.
- Phases are computed in float64, and only sine and cosine are rounded to ``dtype``. At
  position 1,000,000 a float32 phase would be wrong by up to 0.05 radians, a bfloat16 one by
  hundreds of turns.

Source: Vaswani et al., *Attention Is All You Need*, 2017, arXiv:1706.03762, section 3.5.
"""

import math

import torch
from torch import Tensor

from lib.position import Position

__all__ = [
    "SinusoidalPosition",
    "angular_frequencies",
    "shift_matrix",
    "sinusoidal_encoding",
    "wavelengths",
]


def angular_frequencies(
    dim: int, *, base: float = 10000.0, device: torch.device | str | None = None
) -> Tensor:
    r"""Return :math:`\omega_i = \text{base}^{-2i/\text{dim}}`, fastest pair first.

    Args:
        dim: width of the encoding, even.
        base: what the longest wavelength grows towards, over :math:`2\pi`; above 1.
        device: where the result is made.

    Returns:
        float64 ``(dim / 2,)``, radians per token.

    Raises:
        ValueError: if ``dim`` is odd or below 2, or ``base`` is not above 1.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, to be cut into pairs, got dim={dim}")
    if not base > 1.0:
        raise ValueError(f"base must be above 1, so that pairs differ in speed, got base={base}")
    exponents = torch.arange(0, dim, 2, dtype=torch.float64, device=device) / dim
    return base**-exponents


def wavelengths(
    dim: int, *, base: float = 10000.0, device: torch.device | str | None = None
) -> Tensor:
    r"""Return each pair's wavelength :math:`2\pi\,\text{base}^{2i/\text{dim}}` (``eq-wavelength``).

    The longest is :math:`2\pi\,\text{base}^{(\text{dim}-2)/\text{dim}}`, short of
    :math:`2\pi\,\text{base}`.

    Args:
        dim: width of the encoding, even.
        base: as in :func:`sinusoidal_encoding`.
        device: where the result is made.

    Returns:
        float64 ``(dim / 2,)``, in tokens, shortest first.

    Raises:
        ValueError: as :func:`angular_frequencies`.

    Example:
        >>> wavelengths(4, base=100.0)
        tensor([ 6.2832, 62.8319], dtype=torch.float64)
    """
    return 2.0 * math.pi / angular_frequencies(dim, base=base, device=device)


def sinusoidal_encoding(
    positions: Tensor, dim: int, *, base: float = 10000.0, dtype: torch.dtype = torch.float32
) -> Tensor:
    r"""Encode positions as sines and cosines (``eq-sinusoidal``, chapter 03).

    Args:
        positions: ``(...)``, integers or real numbers; negative ones are allowed.
        dim: width of the encoding, even.
        base: sets the spread of the wavelengths, from :math:`2\pi` to nearly
            :math:`2\pi\,\text{base}`.
        dtype: dtype of the result.

    Returns:
        ``(..., dim)``: sin, cos, sin, cos, …, the fastest pair first.

    Raises:
        ValueError: as :func:`angular_frequencies`.

    Example:
        >>> sinusoidal_encoding(torch.tensor([0, 3]), 4)
        tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
                [ 0.1411, -0.9900,  0.0300,  0.9996]])
    """
    frequencies = angular_frequencies(dim, base=base, device=positions.device)
    phases = positions.to(torch.float64).unsqueeze(-1) * frequencies  # (..., dim / 2)
    return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2).to(dtype)


def shift_matrix(
    offset: float,
    dim: int,
    *,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Return the matrix that moves every encoding on by ``offset`` (``eq-shift``, chapter 03).

    .. math::

        &\operatorname{PE}(\text{pos} + \Delta) = M(\Delta) \operatorname{PE}(\text{pos}), \\
        &M(\Delta)_i = \begin{pmatrix} \cos\omega_i\Delta & \sin\omega_i\Delta \\
                                      -\sin\omega_i\Delta & \cos\omega_i\Delta \end{pmatrix}

    M is block-diagonal and orthogonal, and :math:`M(a) M(b) = M(a + b)`.

    Args:
        offset: :math:`\Delta`, in tokens; may be negative.
        dim: width of the encoding, even.
        base: as in :func:`sinusoidal_encoding`.
        dtype: dtype of the result.
        device: where the result is made.

    Returns:
        ``(dim, dim)``. For encodings in rows, ``encoding @ M.T``.

    Raises:
        ValueError: as :func:`angular_frequencies`.
    """
    phases = offset * angular_frequencies(dim, base=base, device=device)
    cos, sin = phases.cos(), phases.sin()
    rows = (torch.stack((cos, sin), dim=-1), torch.stack((-sin, cos), dim=-1))
    return torch.block_diag(*torch.stack(rows, dim=-2)).to(dtype)


class SinusoidalPosition(Position):
    """Sines and cosines added to the input (``eq-sinusoidal``, chapter 03).

    Args:
        d_model: width of the input, even.
        base: as in :func:`sinusoidal_encoding`.

    Raises:
        ValueError: if ``d_model`` is odd or ``base`` is not above 1.
    """

    def __init__(self, d_model: int, *, base: float = 10000.0) -> None:
        super().__init__()
        angular_frequencies(d_model, base=base)  # raises here, not at the first forward
        self.d_model, self.base = d_model, base

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + sinusoidal_encoding(positions, self.d_model, base=self.base, dtype=x.dtype)
