"""Takes the largest log probability; in half precision two different logits become equal ones.

Loses: greedy-precision
"""

import torch


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text = prompt
    ended = torch.zeros(len(prompt), dtype=torch.bool)
    for _ in range(max_new_tokens):
        logits = decoder(text)[:, -1].log_softmax(dim=-1)
        best = logits.argmax(dim=-1)
        best = torch.where(ended, end_token, best)
        text = torch.cat((text, best[:, None]), dim=1)
        ended = ended | (best == end_token)
        if ended.all():
            break
    return text[:, prompt.shape[1] :]
