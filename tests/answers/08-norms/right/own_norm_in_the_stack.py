"""The stack uses the layer_norm of task 1 and the blocks of tasks 3 and 4."""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    d = x.shape[-1]
    one, zero = torch.ones(d, dtype=x.dtype), torch.zeros(d, dtype=x.dtype)

    def norm(y):
        return layer_norm(y, one, zero)

    def nothing(y):
        return torch.zeros_like(y)

    leaves = [matrix.clone().requires_grad_() for matrix in w_2]
    for first, second in zip(w_1, leaves, strict=True):

        def feed(y, first=first, second=second):
            return feed_forward(y, first, second)

        if placement == "pre":
            x = pre_norm_block(x, nothing, feed, norm, norm)
        else:
            x = post_norm_block(x, nothing, feed, lambda y: y, norm)
    x = norm(x) if placement == "pre" else x
    torch.autograd.backward(x, upstream)
    return torch.stack([matrix.grad.norm() for matrix in leaves])
