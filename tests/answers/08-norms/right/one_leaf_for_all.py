"""One leaf for all layers; the result is still part of a graph."""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    w_2 = w_2.clone().requires_grad_()
    for layer in range(w_2.shape[0]):
        if placement == "post":
            x = normalize(x + feed_forward(x, w_1[layer], w_2[layer]))
        else:
            x = x + feed_forward(normalize(x), w_1[layer], w_2[layer])
    output = normalize(x) if placement == "pre" else x
    loss = (output * upstream).sum()
    (gradient,) = torch.autograd.grad(loss, w_2, create_graph=True)
    return gradient.flatten(1).norm(dim=1)
