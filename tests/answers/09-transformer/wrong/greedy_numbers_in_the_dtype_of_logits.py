"""Keeps the new tokens in a tensor of the logits' dtype: float16 has no odd numbers above 2048.

Loses: greedy-precision
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text, said = prompt, None
    ended = torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(max_new_tokens):
        logits = decoder(text)[:, -1]
        best = torch.where(ended, end_token, logits.argmax(dim=-1))
        new = best[:, None].to(logits.dtype)
        said = new if said is None else torch.cat((said, new), dim=1)
        text = torch.cat((prompt, said.long()), dim=1)
        ended = best == end_token
        if ended.all():
            break
    return said.long()
