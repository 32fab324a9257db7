"""The result has the dtype of the prompt, for instance int32.

Loses: generate-precision
"""

from collections.abc import Callable

import torch


# %% generate-answer
def generate(
    model: Callable[[torch.Tensor, int], torch.Tensor],
    prompt: torch.Tensor,
    max_new_tokens: int,
    end_token: int | None,
    use_cache: bool,
) -> torch.Tensor:
    """Continue each text of a batch with the likeliest token, again and again."""
    batch, prompt_len = prompt.shape
    text = prompt
    done = 0  # columns that the model has read
    ended = torch.zeros(batch, dtype=torch.bool, device=prompt.device)
    for _ in range(max_new_tokens):
        start = done if use_cache else 0
        logits = model(text[:, start:], start)
        done = text.shape[1]
        chosen = logits[:, -1].argmax(dim=-1)
        if end_token is not None:
            chosen = torch.where(ended, end_token, chosen)
            ended = ended | (chosen == end_token)
        text = torch.cat((text, chosen.unsqueeze(1).to(prompt.dtype)), dim=1)
        if ended.all():
            break
    return text[:, prompt_len:]
