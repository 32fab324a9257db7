"""Makes `w_2` itself a leaf and reads its gradient, which grows with each call.

Loses: gradients-pre, gradients-post
"""


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    w_2.requires_grad_()
    for first, second in zip(w_1, w_2, strict=True):
        if placement == "pre":
            x = x + feed_forward(normalize(x), first, second)
        else:
            x = normalize(x + feed_forward(x, first, second))
    if placement == "pre":
        x = normalize(x)
    x.backward(upstream)
    return w_2.grad.square().sum(dim=(1, 2)).sqrt()
