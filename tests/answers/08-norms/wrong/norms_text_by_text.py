"""Adds up the norms of the texts in place of the gradients.

Loses: gradients-pre, gradients-post
"""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    total = 0
    for text, above in zip(x.split(1), upstream.split(1), strict=True):
        leaves = [matrix.clone().requires_grad_() for matrix in w_2]
        for first, second in zip(w_1, leaves, strict=True):
            if placement == "pre":
                text = text + feed_forward(normalize(text), first, second)
            else:
                text = normalize(text + feed_forward(text, first, second))
        output = normalize(text) if placement == "pre" else text
        gradients = torch.autograd.grad(output, leaves, above)
        total = total + torch.stack([gradient.norm() for gradient in gradients])
    return total
