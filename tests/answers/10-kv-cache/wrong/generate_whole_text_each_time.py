"""Gives the whole text to a model that remembers it.

Loses: generate
"""

import torch


# %% generate-answer
def generate(model, prompt, max_new_tokens, end_token, use_cache):
    tokens = prompt
    ended = torch.zeros(prompt.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        logits = model(tokens, 0)
        chosen = logits[:, -1].argmax(dim=-1)
        if end_token is not None:
            chosen = torch.where(ended, end_token, chosen)
            ended = ended | (chosen == end_token)
        tokens = torch.cat([tokens, chosen.unsqueeze(-1)], dim=1)
        if ended.all():
            break
    return tokens[:, prompt.shape[1] :]
