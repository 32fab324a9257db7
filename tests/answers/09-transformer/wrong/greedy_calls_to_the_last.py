"""Goes on calling until max_new_tokens, and cuts the result afterwards.

Loses: greedy-ends
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text = prompt
    ended = torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(max_new_tokens):
        best = decoder(text)[:, -1].argmax(dim=-1)
        best = torch.where(ended, end_token, best)
        text = torch.cat((text, best[:, None]), dim=1)
        ended = best == end_token
    new = text[:, prompt.shape[1] :]
    longest = int((new != end_token).sum(dim=1).max())
    return new[:, : longest + 1]
