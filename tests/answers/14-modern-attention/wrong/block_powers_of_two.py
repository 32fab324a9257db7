"""Takes powers of 2: scales scores and maximum, rounds both, and subtracts then.

Loses: block-precision
"""

# %% block-answer
import math

import torch

LOG2_E = math.log2(math.e)


def add_block(
    scores: torch.Tensor,
    value: torch.Tensor,
    largest: torch.Tensor,
    total: torch.Tensor,
    weighted: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    wide = torch.promote_types(scores.dtype, torch.float32)
    new_largest = torch.maximum(largest, scores.amax(dim=-1))
    reference = new_largest.masked_fill(new_largest == -math.inf, 0.0).to(wide) * LOG2_E
    shrink = torch.exp2(largest.to(wide) * LOG2_E - reference)
    weights = torch.exp2(scores.to(wide) * LOG2_E - reference.unsqueeze(-1))
    new_total = total * shrink + weights.sum(dim=-1)
    new_weighted = weighted * shrink.unsqueeze(-1) + weights @ value.to(wide)
    return new_largest, new_total.to(total.dtype), new_weighted.to(weighted.dtype)
