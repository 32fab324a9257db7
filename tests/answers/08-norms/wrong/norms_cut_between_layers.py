"""Makes a new leaf of the stream in each layer: the last layer alone is right.

Loses: gradients-pre, gradients-post
"""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    norms = []
    leaves = [matrix.clone().requires_grad_() for matrix in w_2]
    for first, second in zip(w_1, leaves, strict=True):
        x = x.detach()
        if placement == "pre":
            x = x + feed_forward(normalize(x), first, second)
            output = normalize(x)
        else:
            x = output = normalize(x + feed_forward(x, first, second))
        norms.append(torch.autograd.grad(output, second, upstream, retain_graph=True)[0].norm())
    return torch.stack(norms)
