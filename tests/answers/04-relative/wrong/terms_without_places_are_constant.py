"""Gives zeros where all places are 0: right values, and no gradient for the places.

Loses: terms
"""


# %% terms-answer
def decompose_scores(
    x: torch.Tensor, p: torch.Tensor, w_q: torch.Tensor, w_k: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    x_q, x_k = x @ w_q, (x @ w_k).transpose(-2, -1)
    content = x_q @ x_k
    if not p.any():
        nothing = torch.zeros_like(content)
        return content, nothing, nothing.clone(), nothing.clone()
    p = p.expand(x.shape)
    p_q, p_k = p @ w_q, (p @ w_k).transpose(-2, -1)
    return content, x_q @ p_k, p_q @ x_k, p_q @ p_k
