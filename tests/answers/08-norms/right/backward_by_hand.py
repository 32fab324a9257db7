"""The backward pass written out, without autograd."""

import torch


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    def back(g, t):  # a gradient at normalize(t) becomes this at t
        centred = t - t.mean(-1, keepdim=True)
        s = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        y = centred / s
        return (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True)) / s

    pre, kept = placement == "pre", []
    for first, second in zip(w_1, w_2, strict=True):
        hidden = torch.relu((normalize(x) if pre else x) @ first)
        total = x + hidden @ second
        kept.append((x, hidden, total))
        x = total if pre else normalize(total)
    gradient, norms = back(upstream, x) if pre else upstream, []
    for (entered, hidden, total), first, second in zip(
        reversed(kept), w_1.flip(0), w_2.flip(0), strict=True
    ):
        if not pre:
            gradient = back(gradient, total)
        norms.append(torch.tensordot(hidden, gradient, ([0, 1], [0, 1])).norm())
        through = ((gradient @ second.T) * (hidden > 0)) @ first.T
        gradient = gradient + (back(through, entered) if pre else through)
    return torch.stack(norms[::-1])
