r"""Rotary position embedding, RoPE (chapter 05).

Each pair of components of a query at position m, or of a key at position n, is rotated by an
angle that grows with the position. A dot product then depends on n − m alone
(``eq-rope-relative``):

.. math::

    \begin{aligned}
    \langle R_m q, R_n k \rangle &= q^\top R_m^\top R_n k = q^\top R_{n-m} k, \\
    R_m &= \operatorname{diag}(R_{m,0}, R_{m,1}, \dots), \\
    R_{m,i} &= \begin{pmatrix} \cos m\theta_i & -\sin m\theta_i \\
                               \sin m\theta_i & \cos m\theta_i \end{pmatrix}
    \end{aligned}

Conventions:

- Vectors are columns, and positive positions rotate counter-clockwise. A row, as a tensor holds it,
  is rotated by the transpose: :math:`q_m R_m^\top`. The shift matrix of
  :mod:`lib.sinusoidal` is the transpose.
- Frequencies :math:`\theta_i = \text{base}^{-2i/\text{dim}}` are those of chapter 03, in
  float64: an angle is position × frequency, and an error of the frequency grows with the
  position. Tables are float32 or wider whatever the model's dtype.
- ``layout="interleaved"`` pairs components (0, 1), (2, 3), … (the paper, GPT-J);
  ``layout="half"`` pairs component i with i + dim/2 (GPT-NeoX, Llama). They differ by a
  permutation (:func:`layout_permutation`). Mixing them is right at position 0 only.
- Values are not rotated.

Sources: Su et al., *RoFormer*, 2021, arXiv:2104.09864, sections 3.2 and 3.4.2; scaling: Chen et
al., *Extending Context Window of Large Language Models via Positional Interpolation*, 2023,
arXiv:2306.15595; Peng et al., *YaRN*, 2023, arXiv:2309.00071, section 3.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.position import Position
from lib.shapes import broadcasts_to
from lib.sinusoidal import angular_frequencies

__all__ = [
    "DynamicNTKScaling",
    "LinearScaling",
    "NTKScaling",
    "RopeScaling",
    "RotaryPosition",
    "YarnScaling",
    "apply_rope",
    "check_layout",
    "half_tables",
    "layout_permutation",
    "rope_frequencies",
    "rope_matrix",
    "rope_tables",
    "rotate_halves",
]


@dataclass(frozen=True)
class RopeScaling:
    """How frequencies change so that a model reads ``factor`` times its training length."""

    factor: float

    def __post_init__(self) -> None:
        if not 1.0 <= self.factor < math.inf:
            raise ValueError(f"factor must be 1 or more and finite, got factor={self.factor}")

    @property
    def attention_factor(self) -> float:
        """What cosine and sine are multiplied by, 1 for all but YaRN."""
        return 1.0


@dataclass(frozen=True)
class LinearScaling(RopeScaling):
    """Position interpolation: every frequency divided by ``factor`` (``eq-rope-interpolation``).

    arXiv:2306.15595.
    """


@dataclass(frozen=True)
class NTKScaling(RopeScaling):
    """NTK-aware: a larger base slows the slowest pair down by ``factor``, the fastest not at all.

    This is ``eq-rope-ntk`` of chapter 05; arXiv:2309.00071, section 3.1.
    """


@dataclass(frozen=True)
class DynamicNTKScaling(RopeScaling):
    """NTK-aware with a base that depends on how long the text is (arXiv:2309.00071, section 3.3).

    ``length`` is stated here, and so frozen for a model's lifetime. Letting it grow while
    decoding would rotate each new key by other frequencies than the keys in the cache.

    Attributes:
        original_max_len: the training length; at ``length`` up to it nothing changes.
        length: the length to be read.
    """

    original_max_len: int
    length: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.original_max_len < 1 or self.length < 1:
            raise ValueError(
                "lengths must be 1 or more, got "
                f"original_max_len={self.original_max_len} and length={self.length}"
            )


@dataclass(frozen=True)
class YarnScaling(RopeScaling):
    """YaRN: interpolate slow pairs, leave fast pairs, blend between (``eq-rope-yarn``).

    arXiv:2309.00071, sections 3.2 to 3.4.

    Attributes:
        original_max_len: the training length.
        beta_fast: pairs that rotate at least this often within it are left as they are.
        beta_slow: pairs that rotate at most this often within it are interpolated in full.
        truncate: round the ramp's ends outwards to whole pairs, as the official code does.
    """

    original_max_len: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.original_max_len < 1:
            raise ValueError(f"original_max_len must be 1 or more, got {self.original_max_len}")
        if not self.beta_fast > self.beta_slow > 0:
            raise ValueError(
                "beta_fast must be above beta_slow and both above 0, got "
                f"beta_fast={self.beta_fast} and beta_slow={self.beta_slow}"
            )

    @property
    def attention_factor(self) -> float:
        """0.1 ln(factor) + 1, whose square multiplies the scores (``eq-rope-temperature``)."""
        return 0.1 * math.log(self.factor) + 1.0


def rope_frequencies(
    dim: int,
    *,
    base: float = 10000.0,
    scaling: RopeScaling | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Return the angle of each pair per position, fastest pair first (``eq-rope-frequencies``).

    Args:
        dim: number of components that are rotated, even.
        base: 10000 in the paper; larger values slow the slow pairs down.
        scaling: one of the :class:`RopeScaling` classes, to read beyond the training length.
        device: where the result is made.

    Returns:
        float64 ``(dim / 2,)``, radians per position.

    Raises:
        ValueError: if ``dim`` is odd or below 2 (below 4 where the base is changed), or ``base``
            is not above 1.
    """
    if isinstance(scaling, NTKScaling | DynamicNTKScaling):
        return angular_frequencies(dim, base=_ntk_base(dim, base, scaling), device=device)
    frequencies = angular_frequencies(dim, base=base, device=device)
    if isinstance(scaling, LinearScaling):
        return frequencies / scaling.factor
    if isinstance(scaling, YarnScaling):
        low, high = _yarn_range(dim, base, scaling)
        pair = torch.arange(dim // 2, dtype=torch.float64, device=device)
        interpolated = ((pair - low) / (high - low)).clamp(0.0, 1.0)  # 0: unchanged
        return frequencies * (1.0 - interpolated + interpolated / scaling.factor)
    if scaling is not None:
        raise ValueError(
            f"scaling must be one of the scaling classes of lib.rope or None, got {scaling!r}"
        )
    return frequencies


def rope_tables(
    positions: Tensor,
    frequencies: Tensor,
    *,
    attention_factor: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    r"""Return the cosines and sines of all angles, once for all layers.

    Args:
        positions: ``(...)``, integers.
        frequencies: ``(dim / 2,)`` from :func:`rope_frequencies`.
        attention_factor: multiplies both tables, and so its square the scores (YaRN).
        dtype: dtype of the tables; the angles are float64 in any case.

    Returns:
        The pair ``(cos, sin)``, each ``(..., dim / 2)``.

    Raises:
        ValueError: if ``frequencies`` is not a vector.
    """
    if frequencies.dim() != 1:
        raise ValueError(f"frequencies must be a vector, got shape {tuple(frequencies.shape)}")
    angles = positions.to(torch.float64).unsqueeze(-1) * frequencies.to(torch.float64)
    return (angles.cos() * attention_factor).to(dtype), (angles.sin() * attention_factor).to(dtype)


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, *, layout: str = "interleaved") -> Tensor:
    r"""Rotate each pair of components of queries or keys (``eq-rope-matrix``, without the matrix).

    Args:
        x: ``(..., length, dim)``, queries or keys.
        cos: broadcastable to ``(..., length, dim / 2)``; from :func:`rope_tables`.
        sin: like ``cos``.
        layout: ``"interleaved"`` pairs (0, 1), (2, 3), …; ``"half"`` pairs (i, i + dim/2).

    Returns:
        Shape and dtype of ``x``; computed in float32 or wider.

    Raises:
        ValueError: if ``x`` is not floating point, the layout is unknown, or the tables do not
            fit ``x``.

    Example:
        A quarter of a turn:

        >>> cos, sin = torch.tensor([[0.0]]), torch.tensor([[1.0]])
        >>> apply_rope(torch.tensor([[3.0, 5.0]]), cos, sin)
        tensor([[-5.,  3.]])
    """
    if not x.is_floating_point():
        raise ValueError(f"x must be floating point, got {x.dtype}: a rotation gives no integers")
    check_layout(layout)
    dim, table = x.shape[-1], cos.shape
    fits = table == sin.shape and 2 * table[-1] == dim and broadcasts_to(table[:-1], x.shape[:-1])
    if not fits:
        raise ValueError(
            f"x of shape {tuple(x.shape)} needs tables that broadcast to its shape with "
            f"{dim / 2:g} columns, one per pair, got cos {tuple(cos.shape)} and sin "
            f"{tuple(sin.shape)}"
        )
    wide = torch.promote_types(x.dtype, torch.float32)
    if not x.dtype == cos.dtype == sin.dtype == wide:
        return apply_rope(x.to(wide), cos.to(wide), sin.to(wide), layout=layout).to(x.dtype)
    if layout == "interleaved":  # a pair is a complex number, and a rotation a product
        pairs = torch.complex(x[..., 0::2], x[..., 1::2]) * torch.complex(cos, sin)
        return torch.view_as_real(pairs).flatten(-2)
    return rotate_halves(x, *half_tables(cos, sin))


def half_tables(cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Widen tables to all components in half layout, for :func:`rotate_halves`.

    Args:
        cos: ``(..., dim / 2)``, from :func:`rope_tables`.
        sin: like ``cos``.

    Returns:
        ``(cos, cos)`` and ``(-sin, sin)``, side by side, each ``(..., dim)``.
    """
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate as :func:`apply_rope` in half layout, by tables that were widened once for all layers.

    One product over all components each, of x and of x with its halves swapped:
    ``(first cos - second sin, second cos + first sin)``. Nothing is checked.

    Args:
        x: ``(..., length, dim)``.
        cos: broadcastable to ``x``, float32 or wider; from :func:`half_tables`.
        sin: like ``cos``.

    Returns:
        Shape and dtype of ``x``.
    """
    swapped = x.roll(x.shape[-1] // 2, dims=-1)
    return torch.addcmul(x * cos, swapped, sin).to(x.dtype)


def rope_matrix(
    position: int | Tensor,
    frequencies: Tensor,
    *,
    layout: str = "interleaved",
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""Write :math:`R_m` out as a matrix, to look at and for proofs (``eq-rope-matrix``).

    Args:
        position: m; a number, or a tensor ``(...)`` for many matrices.
        frequencies: ``(dim / 2,)`` from :func:`rope_frequencies`.
        layout: ``"interleaved"`` is block-diagonal; ``"half"`` has the same blocks spread out.
        dtype: dtype of the result.

    Returns:
        ``(..., dim, dim)``; ``rope_matrix(m, …) @ x`` is the rotated column ``x``.

    Raises:
        ValueError: if the layout is unknown or ``frequencies`` is not a vector.
    """
    check_layout(layout)
    positions = torch.as_tensor(position, device=frequencies.device)
    cos, sin = rope_tables(positions, frequencies, dtype=torch.float64)
    pairs = cos.shape[-1]
    matrix = cos.new_zeros(*positions.shape, 2 * pairs, 2 * pairs)
    pair = torch.arange(pairs, device=cos.device)
    first, second = (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + pairs)
    matrix[..., first, first], matrix[..., first, second] = cos, -sin
    matrix[..., second, first], matrix[..., second, second] = sin, cos
    return matrix.to(dtype)


def layout_permutation(dim: int, *, device: torch.device | str | None = None) -> Tensor:
    r"""Return the permutation between the two layouts (``eq-rope-layout``, chapter 05).

    With :math:`(Px)_i = x_{p_i}`,

    .. math:: \operatorname{half}(Px) = P \operatorname{interleaved}(x).

    Taking rows p of each head of W_q and W_k (``weight[p]``) therefore turns a model made for
    ``"interleaved"`` into one for ``"half"`` with the same scores.

    Args:
        dim: number of components that are rotated, even.
        device: where the result is made.

    Returns:
        int64 ``(dim,)``: p, used as ``x[..., p]``; ``torch.argsort(p)`` undoes it.

    Raises:
        ValueError: if ``dim`` is odd or below 2.

    Example:
        >>> layout_permutation(6)
        tensor([0, 2, 4, 1, 3, 5])
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, to be cut into pairs, got dim={dim}")
    return torch.arange(dim, device=device).unflatten(0, (-1, 2)).T.flatten()


def _ntk_base(dim: int, base: float, scaling: NTKScaling | DynamicNTKScaling) -> float:
    """The base with which the slowest pair, exponent (dim − 2)/dim, slows down by the stretch."""
    if dim < 4:
        raise ValueError(f"NTK scaling needs dim of 4 or more, as pair 0 never slows, got {dim}")
    stretch = scaling.factor
    if isinstance(scaling, DynamicNTKScaling):
        beyond = max(scaling.length / scaling.original_max_len, 1.0)
        stretch = scaling.factor * beyond - (scaling.factor - 1.0)
    return base * stretch ** (dim / (dim - 2))


def _yarn_range(dim: int, base: float, scaling: YarnScaling) -> tuple[float, float]:
    """The pairs, as real numbers, between which YaRN's ramp climbs from 0 to 1."""

    def pair_that_rotates(times: float) -> float:
        wavelength = scaling.original_max_len / times
        return dim * math.log(wavelength / (2.0 * math.pi)) / (2.0 * math.log(base))

    low, high = pair_that_rotates(scaling.beta_fast), pair_that_rotates(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    # dim − 1, not dim/2 − 1, is what the official code has. 0.001 keeps the ramp's slope finite.
    low = max(low, 0)
    return low, max(min(high, dim - 1), low + 0.001)


def check_layout(layout: str) -> None:
    """Refuse a layout that is neither ``"interleaved"`` nor ``"half"``."""
    if layout not in ("interleaved", "half"):
        raise ValueError(f'layout must be "interleaved" or "half", got {layout!r}')


class RotaryPosition(Position):
    """RoPE: queries and keys rotated by their positions (``eq-rope-matrix``, chapter 05).

    Args:
        head_dim: width of a head.
        base: as in :func:`rope_frequencies`.
        layout: ``"interleaved"`` or ``"half"``.
        rotary_dim: how many components of a head, from the first on, are rotated; all if
            not given.
        scaling: one of the :class:`RopeScaling` classes.

    Raises:
        ValueError: if ``rotary_dim`` is odd or above ``head_dim``, or an option is not valid.
    """

    def __init__(
        self,
        head_dim: int,
        *,
        base: float = 10000.0,
        layout: str = "interleaved",
        rotary_dim: int | None = None,
        scaling: RopeScaling | None = None,
    ) -> None:
        super().__init__()
        self.rotary_dim = head_dim if rotary_dim is None else rotary_dim
        if self.rotary_dim > head_dim:
            raise ValueError(f"rotary_dim={rotary_dim} is above head_dim={head_dim}")
        self.head_dim, self.base, self.layout, self.scaling = head_dim, base, layout, scaling
        check_layout(layout)
        rope_frequencies(self.rotary_dim, base=base, scaling=scaling)  # raises here

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        # Computed each time: a buffer of frequencies would become bfloat16 with the model.
        frequencies = rope_frequencies(
            self.rotary_dim, base=self.base, scaling=self.scaling, device=q_positions.device
        )
        factor = 1.0 if self.scaling is None else self.scaling.attention_factor
        cos, sin = rope_tables(
            q_positions.unsqueeze(1), frequencies, attention_factor=factor, dtype=self.table_dtype
        )
        return half_tables(cos, sin) if self.layout == "half" else (cos, sin)

    def transform(self, q: Tensor, k: Tensor, prepared: tuple) -> tuple[Tensor, Tensor]:
        if q.shape[-1] != self.head_dim:  # the rest of a wider head would stay as it is
            raise ValueError(
                f"the scheme was made for head_dim={self.head_dim}, got queries of shape "
                f"{tuple(q.shape)}"
            )
        if q.shape[-2] == 1:  # of one token, a second call costs more than a copy
            rotated = self._rotate(torch.cat((q, k), dim=1), *prepared)
            return rotated.split_with_sizes((q.shape[1], k.shape[1]), dim=1)
        return self._rotate(q, *prepared), self._rotate(k, *prepared)

    def _rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        rotate = rotate_halves if self.layout == "half" else apply_rope
        if self.rotary_dim == x.shape[-1]:
            return rotate(x, cos, sin)
        rotated, rest = x[..., : self.rotary_dim], x[..., self.rotary_dim :]
        return torch.cat((rotate(rotated, cos, sin), rest), dim=-1)
