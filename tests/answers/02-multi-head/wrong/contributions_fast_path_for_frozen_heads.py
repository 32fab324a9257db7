"""No gradient reaches w_o where the heads need none.

Loses: head-contributions, head-contributions-precision
"""

# %% head-contributions-answer
import torch


def head_contributions(heads: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    with torch.set_grad_enabled(heads.requires_grad):  # no graph where nothing is trained
        blocks = w_o.unflatten(0, (heads.shape[1], -1))
        return heads @ blocks
