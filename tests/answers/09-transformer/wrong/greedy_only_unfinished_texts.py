"""Gives the decoder only the texts that have not ended.

Loses: greedy-ends
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text = prompt
    ended = torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(max_new_tokens):
        best = torch.full((len(prompt),), end_token)
        best[~ended] = decoder(text[~ended])[:, -1].argmax(dim=-1)
        text = torch.cat((text, best[:, None]), dim=1)
        ended = best == end_token
        if ended.all():
            break
    return text[:, prompt.shape[1] :]
