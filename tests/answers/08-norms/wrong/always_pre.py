"""Does not look at the placement: always pre-norm.

Loses: gradients-post
"""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    leaves = [matrix.clone().requires_grad_() for matrix in w_2]
    for first, second in zip(w_1, leaves, strict=True):
        x = x + feed_forward(normalize(x), first, second)
    gradients = torch.autograd.grad(normalize(x), leaves, upstream)
    return torch.stack([gradient.norm() for gradient in gradients])
