"""Computes and returns float64, whatever comes in.

Loses: decoder-precision
"""

import torch


# %% decoder-answer
def decoder_layer(
    x, context, context_real, self_weights, cross_weights, feed_forward_weights, norms
):
    x, context = x.double(), context.double()
    self_weights = tuple(part.double() for part in self_weights)
    cross_weights = tuple(part.double() for part in cross_weights)
    feed_forward_weights = tuple(part.double() for part in feed_forward_weights)
    norms = [tuple(part.double() for part in norm) for norm in norms]
    causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    seen = context_real[:, None, None, :]
    normed = layer_norm(x, norms[0])
    x = x + attend(normed, normed, self_weights, causal)
    x = x + attend(layer_norm(x, norms[1]), context, cross_weights, seen)
    return x + feed_forward(layer_norm(x, norms[2]), feed_forward_weights)
