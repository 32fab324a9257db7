"""Takes a batch of one text to be without padding.

Loses: encoder
"""

import torch


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    normed = layer_norm(x, norms[0])
    real = real if len(x) > 1 else torch.ones_like(real)
    x = x + attend(normed, normed, attention_weights, real[:, None, None, :])
    return x + feed_forward(layer_norm(x, norms[1]), feed_forward_weights)
