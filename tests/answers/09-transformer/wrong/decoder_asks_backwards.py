"""The context asks, and the target is asked; then a mean over the source.

Loses: decoder, decoder-precision
"""

import torch


# %% decoder-answer
def decoder_layer(
    x, context, context_real, self_weights, cross_weights, feed_forward_weights, norms
):
    causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    normed = layer_norm(x, norms[0])
    x = x + attend(normed, normed, self_weights, causal)
    normed = layer_norm(x, norms[1])
    asked = attend(context, normed, cross_weights, torch.ones(1, dtype=torch.bool))
    x = x + asked.mean(dim=1, keepdim=True)
    return x + feed_forward(layer_norm(x, norms[2]), feed_forward_weights)
