"""Tells isin that no position occurs twice, but two texts may have the same ones.

Loses: global-mask
"""

# %% global-answer
import torch


def add_global_tokens(
    mask: torch.Tensor,
    q_positions: torch.Tensor,
    k_positions: torch.Tensor,
    global_positions: torch.Tensor,
    causal: bool,
) -> torch.Tensor:
    q_global = torch.isin(q_positions, global_positions, assume_unique=True)
    k_global = torch.isin(k_positions, global_positions, assume_unique=True)
    added = q_global.unsqueeze(-1) | k_global.unsqueeze(-2)
    if causal:
        added = added & (k_positions.unsqueeze(-2) <= q_positions.unsqueeze(-1))
    return mask | added
