"""Learned absolute positions: one vector for each position of a table (chapter 03).

The table has an end: a position beyond it has no vector, and rows of positions that did not occur
in training have learned nothing. BERT and GPT-2 encode position in this way.

Sources: Gehring et al., *Convolutional Sequence to Sequence Learning*, 2017, arXiv:1705.03122,
section 3.1; Devlin et al., *BERT*, 2019, arXiv:1810.04805, section 3.
"""

import torch
from torch import Tensor, nn

from lib.position import Position
from lib.shapes import check_sizes

__all__ = ["LearnedPosition"]


class LearnedPosition(Position):
    """One learned vector per position, added to the input (chapter 03).

    Args:
        max_len: number of positions; :func:`lib.position.check_positions` refuses others.
        d_model: width of the input.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        check_sizes(max_len=max_len, d_model=d_model)
        self.max_len, self.d_model = max_len, d_model
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.table, std=0.02)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.table[positions]
