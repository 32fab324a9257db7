"""Takes the content's part as what x + p has more than p: no digits beside large places.

Loses: terms-precision
"""


# %% terms-answer
def decompose_scores(
    x: torch.Tensor, p: torch.Tensor, w_q: torch.Tensor, w_k: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    p = p.expand(x.shape)
    both = x + p  # what the model sees
    q_place, k_place = p @ w_q, p @ w_k
    q_content = both @ w_q - q_place
    k_content = both @ w_k - k_place
    return tuple(
        q @ k.transpose(-2, -1) for q in (q_content, q_place) for k in (k_content, k_place)
    )
