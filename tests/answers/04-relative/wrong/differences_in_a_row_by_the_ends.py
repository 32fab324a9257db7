"""Counts rows where the last position lies as far from the first as in a row without gaps.

Loses: differences
"""


# %% differences-answer
def relative_positions(q_positions: torch.Tensor, k_positions: torch.Tensor) -> torch.Tensor:
    m, n = q_positions.long(), k_positions.long()
    in_a_row = all(
        bool((each[..., -1] - each[..., 0] == each.shape[-1] - 1).all()) for each in (m, n)
    )
    if in_a_row:
        steps = torch.arange(n.shape[-1]) - torch.arange(m.shape[-1]).unsqueeze(-1)
        return (n[..., 0] - m[..., 0])[..., None, None] + steps
    return n.unsqueeze(-2) - m.unsqueeze(-1)
