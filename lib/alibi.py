r"""Attention with linear biases, ALiBi (chapter 06).

Head h subtracts its slope times the distance from each scaled score (``eq-alibi``):

.. math:: b_{h,m,n} = -\mu_h \, |m - n|

Conventions:

- Slopes are positive and the bias is zero or negative: the farther, the lower.
- The formulas count heads from h = 1, tensors from 0. By the rule ``"geometric"``, and for H a
  power of two by both, slopes fall from head to head. By ``"official"`` with another H they start
  again: the steepest is head P of the tensor, P the largest power of two below H.
- For H heads, H a power of two, both rules give :math:`\mu_h = 2^{-8h/H}` (``eq-alibi-slopes``).
  For other H they differ: the paper's sentence (``"geometric"``) keeps that formula; the official
  code (``"official"``, what released models use) takes the slopes of the power of two below H,
  then every other slope of the power of two above H (``prp-official-slopes``).
- The paper's models are causal, where m ≥ n and :math:`|m-n| = m - n`. Some code adds
  :math:`\mu_h n` in place of :math:`-\mu_h (m - n)`: along one row these differ by the constant
  :math:`\mu_h m`, and the softmax does not see it (``prp-bloom``).

Source: Press et al., *Train Short, Test Long*, 2021, arXiv:2108.12409, section 3.
"""

import torch
from torch import Tensor

from lib.position import Position
from lib.relative import relative_positions

__all__ = ["AlibiPosition", "alibi_bias", "alibi_slopes"]


def alibi_slopes(
    n_heads: int,
    *,
    rule: str = "official",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Return one slope per head (``eq-alibi-slopes``, chapter 06).

    Args:
        n_heads: number of heads, at least 1.
        rule: ``"official"`` or ``"geometric"``; they differ where ``n_heads`` is not a power of 2.
        dtype: dtype of the result.
        device: where the result is made.

    Returns:
        ``(n_heads,)``, positive, in scores per token.

    Raises:
        ValueError: if ``n_heads`` is below 1 or the rule is unknown.

    Example:
        >>> alibi_slopes(4)
        tensor([0.2500, 0.0625, 0.0156, 0.0039])
        >>> alibi_slopes(3)
        tensor([0.0625, 0.0039, 0.2500])
    """
    if n_heads < 1:
        raise ValueError(f"n_heads must be 1 or more, got n_heads={n_heads}")
    if rule not in ("official", "geometric"):
        raise ValueError(f'rule must be "official" or "geometric", got {rule!r}')
    if rule == "geometric":
        return _geometric(n_heads, device).to(dtype)
    power = 1 << (n_heads.bit_length() - 1)  # the largest power of two up to n_heads
    above = _geometric(2 * power, device)[0::2]
    return torch.cat((_geometric(power, device), above[: n_heads - power])).to(dtype)


def alibi_bias(
    n_heads: int,
    q_positions: Tensor,
    k_positions: Tensor,
    *,
    rule: str = "official",
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""Return the bias :math:`-\mu_h |m - n|` of every head (``eq-alibi``, chapter 06).

    Args:
        n_heads: number of heads, at least 1.
        q_positions: ``(..., q_len)``, the queries' positions m.
        k_positions: ``(..., k_len)``, the keys' positions n.
        rule: as in :func:`alibi_slopes`.
        dtype: dtype of the result.

    Returns:
        ``(..., n_heads, q_len, k_len)``, zero or negative.

    Raises:
        ValueError: if ``n_heads`` is below 1, the rule is unknown or positions are not integers.

    Example:
        >>> alibi_bias(2, torch.tensor([7]), torch.tensor([5, 6, 7]))
        tensor([[[-0.1250, -0.0625,  0.0000]],
        <BLANKLINE>
                [[-0.0078, -0.0039,  0.0000]]])
    """
    slopes = alibi_slopes(n_heads, rule=rule, dtype=dtype, device=q_positions.device)
    nearness = -relative_positions(q_positions, k_positions).abs()  # (..., q_len, k_len)
    return slopes.view(-1, 1, 1) * nearness.unsqueeze(-3).to(dtype)


def _geometric(n_heads: int, device: torch.device | str | None) -> Tensor:
    """The sequence that starts at 2^(−8/H) and has it as its ratio, in float64."""
    heads = torch.arange(1, n_heads + 1, dtype=torch.float64, device=device)
    return torch.exp2(-8.0 * heads / n_heads)


class AlibiPosition(Position):
    """A fixed penalty per token of distance, one slope for each head (``eq-alibi``, chapter 06).

    Args:
        n_heads: number of query heads.
        rule: as in :func:`alibi_slopes`.

    Raises:
        ValueError: if ``n_heads`` is below 1 or the rule is unknown.
    """

    def __init__(self, n_heads: int, *, rule: str = "official") -> None:
        super().__init__()
        alibi_slopes(n_heads, rule=rule)  # raises here, not at the first forward
        self.n_heads, self.rule = n_heads, rule

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return alibi_bias(
            self.n_heads, q_positions, k_positions, rule=self.rule, dtype=self.table_dtype
        )

    def bias(self, q: Tensor, k: Tensor, prepared: Tensor) -> Tensor:
        return prepared
