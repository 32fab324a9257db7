"""Takes positions for consecutive ones if the last minus the first is their number less 1.

Loses: window-mask
"""

import torch


# %% window-answer
def sliding_window_mask(
    q_positions: torch.Tensor, k_positions: torch.Tensor, window: int, causal: bool
) -> torch.Tensor:
    length = q_positions.shape[1]
    span = q_positions[:, -1] - q_positions[:, 0]
    if torch.equal(q_positions, k_positions) and bool((span == length - 1).all()):
        # no gaps: the same band for all texts
        band = torch.ones(length, length, dtype=torch.bool, device=q_positions.device)
        reach = min(window, length)
        band = band.triu(-reach).tril(0 if causal else reach)
        return band.expand(q_positions.shape[0], length, length).clone()
    distance = q_positions.unsqueeze(-1) - k_positions.unsqueeze(-2)
    if causal:
        return (distance >= 0) & (distance <= window)
    return distance.abs() <= window
