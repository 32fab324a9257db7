"""The loss by torch's own, of the rows that count; greedy by topk, into one tensor."""

import torch


# %% shift-answer
def teacher_forcing(tokens, real):
    inputs = tokens.narrow(1, 0, tokens.shape[1] - 1)
    return inputs, tokens.roll(-1, 1)[:, :-1], real.roll(-1, 1)[:, :-1]


# %% loss-answer
def cross_entropy(logits, targets, counts):
    return torch.nn.functional.cross_entropy(logits[counts], targets[counts])


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    batch, start = prompt.shape
    text = prompt.new_full((batch, start + max_new_tokens), end_token)
    text[:, :start] = prompt
    going = torch.arange(batch)  # the texts that have not ended
    end = start
    while end < text.shape[1] and len(going):
        best = decoder(text[:, :end])[:, -1].topk(1).indices[:, 0]
        text[going, end] = best[going]
        going = going[best[going] != end_token]
        end += 1
    return text[:, start:end]
