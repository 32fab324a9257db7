"""A single query is taken for a step of decoding, and gets no gradient.

Loses: heads
"""

import torch


# %% heads-answer
def rotate_queries_and_keys(
    query: torch.Tensor,
    key: torch.Tensor,
    q_positions: torch.Tensor,
    k_positions: torch.Tensor,
    frequencies: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    r = frequencies.shape[0]

    def rotate(x, positions):
        angles = positions[:, None, :, None] * frequencies
        cos, sin = angles.cos(), angles.sin()
        a, b, rest = x[..., :r], x[..., r : 2 * r], x[..., 2 * r :]
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
        return torch.cat((turned, rest), dim=-1)

    decoding = query.shape[2] == 1  # one new token: nothing is trained here
    with torch.set_grad_enabled(torch.is_grad_enabled() and not decoding):
        return rotate(query, q_positions), rotate(key, k_positions)
