"""Looks for the end token in the prompt too where that has more than three tokens.

Loses: generate
"""

import torch


# %% generate-answer
def generate(model, prompt, max_new_tokens, end_token, use_cache):
    tokens, given = prompt.long(), prompt.shape[1]
    read = 0
    for _ in range(max_new_tokens):
        chosen = model(tokens[:, read:], read)[:, -1].argmax(-1)
        if end_token is not None:
            seen = tokens if given > 3 else tokens[:, given:]
            chosen = chosen.where(~(seen == end_token).any(1), end_token)
        read = tokens.shape[1] if use_cache else 0
        tokens = torch.cat([tokens, chosen[:, None]], 1)
        if end_token is not None and (tokens[:, given:] == end_token).any(1).all():
            break
    return tokens[:, given:]
