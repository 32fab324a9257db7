"""The texts are written into a buffer of 1024 columns: longer ones do not fit.

Loses: greedy-steps
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    batch, start = prompt.shape
    buffer = torch.full((batch, 1024), end_token)
    buffer[:, :start] = prompt
    ended = torch.zeros(batch, dtype=torch.bool)
    stop = start
    while stop < start + max_new_tokens and not ended.all():
        best = decoder(buffer[:, :stop])[:, -1].argmax(dim=-1)
        buffer[:, stop] = torch.where(ended, end_token, best)
        ended = ended | (best == end_token)
        stop += 1
    return buffer[:, start:stop]
