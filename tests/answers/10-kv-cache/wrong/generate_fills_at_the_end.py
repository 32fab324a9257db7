"""Ended texts go on with what the model says and are overwritten with the end token after the loop,
so the model has read other tokens.

Loses: generate
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
    text = prompt.long()
    done = 0  # columns that the model has read
    ended = torch.zeros(batch, dtype=torch.bool, device=prompt.device)
    for _ in range(max_new_tokens):
        start = done if use_cache else 0
        logits = model(text[:, start:], start)
        done = text.shape[1]
        chosen = logits[:, -1].argmax(dim=-1)
        if end_token is not None:
            ended = ended | (chosen == end_token)
        text = torch.cat((text, chosen.unsqueeze(1)), dim=1)
        if ended.all():
            break
    new = text[:, prompt_len:]
    if end_token is not None:
        behind = (new == end_token).cumsum(dim=1) > 0
        new = new.masked_fill(behind, end_token)
    return new
