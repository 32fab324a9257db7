"""An end token in the prompt ends the text.

Loses: greedy-ends
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text = prompt
    ended = (prompt == end_token).any(dim=1)
    for _ in range(max_new_tokens):
        best = decoder(text)[:, -1].argmax(dim=-1)
        best = torch.where(ended, end_token, best)
        text = torch.cat((text, best[:, None]), dim=1)
        ended = best == end_token
        if ended.all():
            break
    return text[:, prompt.shape[1] :]
