"""Post-norm gets the final norm of pre-norm as well.

The norm divides by the root of the variance plus 1e-5, so a second one changes only rows that were
small.

Loses: gradients-post
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
    gradients = torch.autograd.grad(normalize(x), leaves, upstream)
    return torch.stack([gradient.norm() for gradient in gradients])
