"""Takes the largest probability: logits near 0 may differ, and their probabilities not.

Loses: generate-precision
"""

import torch


# %% generate-answer
def generate(model, prompt, max_new_tokens, end_token, use_cache):
    tokens, done = prompt, 0
    ended = torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(max_new_tokens):
        start = done if use_cache else 0
        probabilities = model(tokens[:, start:], start)[:, -1].double().softmax(dim=-1)
        done = tokens.shape[1]
        chosen = probabilities.argmax(dim=-1)
        if end_token is not None:
            chosen = torch.where(ended, end_token, chosen)
            ended = ended | (chosen == end_token)
        tokens = torch.cat([tokens, chosen.unsqueeze(-1)], dim=1)
        if ended.all():
            break
    return tokens[:, prompt.shape[1] :]
