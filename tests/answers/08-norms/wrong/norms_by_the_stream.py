"""The gradient by what leaves each layer, in place of the one by its W₂.

Loses: gradients-pre, gradients-post
"""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    x, streams = x.clone().requires_grad_(), []
    for first, second in zip(w_1, w_2, strict=True):
        if placement == "pre":
            x = x + feed_forward(normalize(x), first, second)
        else:
            x = normalize(x + feed_forward(x, first, second))
        streams.append(x)
    output = normalize(x) if placement == "pre" else x
    gradients = torch.autograd.grad(output, streams, upstream)
    return torch.stack([gradient.norm() for gradient in gradients])
