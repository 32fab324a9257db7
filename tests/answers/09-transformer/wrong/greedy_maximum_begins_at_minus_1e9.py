"""The best token is looked for in pieces of the vocabulary, beginning with a logit of -1e9.

Loses: greedy-precision
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text = prompt
    ended = torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(max_new_tokens):
        last = decoder(text)[:, -1].double()
        top, best = torch.full((len(last),), -1e9).double(), torch.zeros(len(last)).long()
        for begin in range(0, last.shape[-1], 1024):
            highest, place = last[:, begin : begin + 1024].max(dim=-1)
            best = torch.where(highest > top, begin + place, best)
            top = torch.maximum(top, highest)
        best = torch.where(ended, end_token, best)
        text = torch.cat((text, best[:, None]), dim=1)
        ended = best == end_token
        if ended.all():
            break
    return text[:, prompt.shape[1] :]
