"""Scales the upstream it was given, in place, to the mean over tokens, and the norms back.

Loses: gradients-pre, gradients-post
"""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    leaves = [matrix.clone().requires_grad_() for matrix in w_2]
    for first, second in zip(w_1, leaves, strict=True):
        if placement == "pre":
            x = x + feed_forward(normalize(x), first, second)
        else:
            x = normalize(x + feed_forward(x, first, second))
    output = normalize(x) if placement == "pre" else x
    tokens = x.shape[0] * x.shape[1]
    upstream /= tokens
    gradients = torch.autograd.grad(output, leaves, upstream)
    return tokens * torch.stack([gradient.norm() for gradient in gradients])
