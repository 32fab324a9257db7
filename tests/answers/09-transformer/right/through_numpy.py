"""The shift and the loop through NumPy; the loss with one-hot vectors."""

import numpy as np
import torch


# %% shift-answer
def teacher_forcing(tokens, real):
    columns = np.arange(tokens.shape[1] - 1)
    parts = tokens.numpy()[:, columns], tokens.numpy()[:, columns + 1], real.numpy()[:, columns + 1]
    return tuple(torch.from_numpy(part) for part in parts)


# %% loss-answer
def cross_entropy(logits, targets, counts):
    keep = counts.flatten().nonzero()[:, 0]
    log_p = torch.log_softmax(logits.flatten(0, 1).index_select(0, keep), dim=-1)
    wish = torch.nn.functional.one_hot(targets.flatten()[keep], logits.shape[-1])
    return -(wish * log_p).sum() / len(keep)


# %% greedy-answer
def greedy(decoder, prompt, max_new_tokens, end_token):
    text, said = prompt.numpy(), np.zeros(len(prompt), dtype=bool)
    for _ in range(max_new_tokens):
        logits = decoder(torch.from_numpy(text)).double().numpy()
        best = np.where(said, end_token, logits[:, -1, :].argmax(axis=1))
        said |= best == end_token
        text = np.append(text, best[:, None], axis=1)
        if said.all():
            break
    return torch.from_numpy(text[:, prompt.shape[1] :])
