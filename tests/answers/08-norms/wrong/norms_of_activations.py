"""How large the stream is in front of each layer, without any gradient.

Loses: gradients-pre, gradients-post
"""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    sizes = []
    for first, second in zip(w_1, w_2, strict=True):
        sizes.append(x.norm())
        if placement == "pre":
            x = x + feed_forward(normalize(x), first, second)
        else:
            x = normalize(x + feed_forward(x, first, second))
    return torch.stack(sizes)
