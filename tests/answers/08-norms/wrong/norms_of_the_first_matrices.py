"""The gradients by W₁.

Loses: gradients-pre, gradients-post
"""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    leaves = [matrix.clone().requires_grad_() for matrix in w_1]
    for first, second in zip(leaves, w_2, strict=True):
        if placement == "pre":
            x = x + feed_forward(normalize(x), first, second)
        else:
            x = normalize(x + feed_forward(x, first, second))
    if placement == "pre":
        x = normalize(x)
    gradients = torch.autograd.grad(x, leaves, upstream)
    return torch.stack([gradient.norm() for gradient in gradients])
