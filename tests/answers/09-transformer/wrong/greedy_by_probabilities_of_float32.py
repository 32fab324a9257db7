"""Compares probabilities where the logits are not float64.

Loses: greedy-precision
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text = prompt
    ended = torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(max_new_tokens):
        logits = decoder(text)[:, -1]
        double = logits.dtype == torch.float64
        best = (logits if double else logits.softmax(dim=-1)).argmax(dim=-1)
        best = torch.where(ended, end_token, best)
        text = torch.cat((text, best[:, None]), dim=1)
        ended = best == end_token
        if ended.all():
            break
    return text[:, prompt.shape[1] :]
