r"""A learned bias that falls with the logarithm of the distance, KERPLE (chapter 06).

Head h subtracts a logarithm where ALiBi subtracts a line (``prp-kerple``):

.. math:: b_{h,m,n} = -r_1 \log(1 + r_2 \, |m - n|)

Conventions:

- :math:`r_1` and :math:`r_2` are positive, one pair per head, and learned. Near the query the bias
  is that of ALiBi with the slope :math:`r_1 r_2`; far away each doubling of the distance costs the
  same.
- This is the paper's logarithmic variant. The bias is added to the scaled scores, as in the
  authors' code. That code keeps the numbers positive by raising them to 0.01 before each use; here
  their logarithms are the parameters. They begin as there: :math:`r_1` uniform up to 2 and
  :math:`r_2` up to 1, not below 0.01.

Source: Chi et al., *KERPLE: Kernelized Relative Positional Embedding for Length Extrapolation*,
2022, arXiv:2205.09921, and its code.
"""

import torch
from torch import Tensor, nn

from lib.position import Position
from lib.relative import relative_positions
from lib.shapes import check_sizes

__all__ = ["KerplePosition", "kerple_bias"]


def kerple_bias(r_1: Tensor, r_2: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
    r"""Return the bias :math:`-r_1 \log(1 + r_2 |m - n|)` of every head (``prp-kerple``).

    Args:
        r_1: ``(n_heads,)``, positive: how much of the score each factor e of distance costs.
        r_2: ``(n_heads,)``, positive: at a distance of about 1/r_2 the bias turns from linear to
            logarithmic.
        q_positions: ``(..., q_len)``, the queries' positions m.
        k_positions: ``(..., k_len)``, the keys' positions n.

    Returns:
        ``(..., n_heads, q_len, k_len)``, zero or negative, of the dtype of ``r_1``.

    Raises:
        ValueError: if ``r_1`` and ``r_2`` are not vectors of one length, or positions are not
            integers.

    Example:
        >>> kerple_bias(torch.ones(1), torch.ones(1), torch.tensor([7]), torch.tensor([4, 6, 7]))
        tensor([[[-1.3863, -0.6931, -0.0000]]])
    """
    if r_1.dim() != 1 or r_1.shape != r_2.shape:
        raise ValueError(
            f"r_1 {tuple(r_1.shape)} and r_2 {tuple(r_2.shape)} must be (n_heads,) both"
        )
    distance = relative_positions(q_positions, k_positions).abs().unsqueeze(-3).to(r_1.dtype)
    return -r_1.view(-1, 1, 1) * torch.log1p(r_2.view(-1, 1, 1) * distance)


class KerplePosition(Position):
    """A learned logarithmic penalty for distance, two numbers for each head (``prp-kerple``).

    Args:
        n_heads: number of query heads.

    Raises:
        ValueError: if ``n_heads`` is below 1.
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        check_sizes(n_heads=n_heads)
        self.n_heads = n_heads
        self.log_r_1 = nn.Parameter((2.0 * torch.rand(n_heads)).clamp(min=0.01).log())
        self.log_r_2 = nn.Parameter(torch.rand(n_heads).clamp(min=0.01).log())

    def prepare(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        r_1, r_2 = (log.to(self.table_dtype).exp() for log in (self.log_r_1, self.log_r_2))
        return kerple_bias(r_1, r_2, q_positions, k_positions)

    def bias(self, q: Tensor, k: Tensor, prepared: Tensor) -> Tensor:
        return prepared
