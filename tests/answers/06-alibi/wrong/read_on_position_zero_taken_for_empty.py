"""A cache that holds nothing but position 0 counts as empty: `any()` of the positions is False.

Loses: read-on
"""

# %% read-on-answer
from collections.abc import Callable

import torch


def read_on(
    attend: Callable[..., torch.Tensor],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    past_key: torch.Tensor,
    past_value: torch.Tensor,
    past_positions: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    new = torch.arange(query.shape[2]).expand(query.shape[0], -1)
    if past_positions.any():
        new = new + past_positions.amax(dim=-1, keepdim=True) + 1
    keys = torch.cat((past_key, key), dim=2)
    values = torch.cat((past_value, value), dim=2)
    positions = torch.cat((past_positions, new), dim=1)
    output = attend(query, keys, values, new, positions)
    return output, keys, values, positions
