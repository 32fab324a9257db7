"""Takes the largest probability in float64: logits near 0 may differ, and their probabilities not.

Loses: greedy-precision
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text = prompt
    ended = torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(max_new_tokens):
        best = decoder(text)[:, -1].double().softmax(dim=-1).argmax(dim=-1)
        best = torch.where(ended, end_token, best)
        text = torch.cat((text, best[:, None]), dim=1)
        ended = best == end_token
        if ended.all():
            break
    return text[:, prompt.shape[1] :]
