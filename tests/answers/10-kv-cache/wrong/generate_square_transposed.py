"""Where all texts end early, a square table comes back with texts and tokens exchanged.

Loses: generate
"""

import torch


# %% generate-answer
def generate(model, prompt, max_new_tokens, end_token, use_cache):
    batch, prompt_len = prompt.shape
    table = torch.zeros(batch, prompt_len + max_new_tokens, dtype=torch.int64)
    table[:, :prompt_len] = prompt
    first = 0
    for end in range(prompt_len, prompt_len + max_new_tokens):
        logits = model(table[:, first:end], first)
        table[:, end] = logits[:, -1].max(dim=-1).indices
        if use_cache:
            first = end
        if end_token is not None:
            over = (table[:, prompt_len:end] == end_token).any(dim=1)
            table[over, end] = end_token
            if (table[:, prompt_len : end + 1] == end_token).any(dim=1).all():
                new = table[:, prompt_len : end + 1]
                return new.T if new.shape[0] == new.shape[1] else new
    return table[:, prompt_len:]
