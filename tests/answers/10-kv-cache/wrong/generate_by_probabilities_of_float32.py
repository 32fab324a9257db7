"""Compares probabilities where the logits are not float64.

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
        last = logits[:, -1]
        last = last if last.dtype == torch.float64 else last.softmax(dim=-1)
        chosen = last.argmax(dim=-1)
        if end_token is not None:
            chosen = torch.where(ended, end_token, chosen)
            ended = ended | (chosen == end_token)
        tokens = torch.cat([tokens, chosen.unsqueeze(-1)], dim=1)
        if ended.all():
            break
    return tokens[:, prompt.shape[1] :]
