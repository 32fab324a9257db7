"""Keeps new tokens in the dtype of the prompt, and makes them int64 at the end.

Loses: generate-precision
"""

import torch


# %% generate-answer
def generate(model, prompt, max_new_tokens, end_token, use_cache):
    tokens, done = prompt, 0
    ended = torch.zeros(prompt.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        start = done if use_cache else 0
        logits = model(tokens[:, start:], start)
        done = tokens.shape[1]
        chosen = logits[:, -1].argmax(dim=-1)
        if end_token is not None:
            chosen = torch.where(ended, end_token, chosen)
            ended = ended | (chosen == end_token)
        tokens = torch.cat([tokens, chosen.unsqueeze(-1).to(prompt.dtype)], dim=1)
        if ended.all():
            break
    return tokens[:, prompt.shape[1] :].long()
