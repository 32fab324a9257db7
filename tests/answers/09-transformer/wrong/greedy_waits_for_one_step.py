"""Stops only when all texts say the end token in the same step.

Loses: greedy-ends
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text = prompt

    for _ in range(max_new_tokens):
        best = decoder(text)[:, -1].argmax(dim=-1)
        text = torch.cat((text, best[:, None]), dim=1)
        if (best == end_token).all():
            break
    return text[:, prompt.shape[1] :]
