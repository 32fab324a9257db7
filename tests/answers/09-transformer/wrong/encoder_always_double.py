"""Computes and returns float64, whatever comes in.

Loses: encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    x = x.double()
    attention_weights = tuple(part.double() for part in attention_weights)
    feed_forward_weights = tuple(part.double() for part in feed_forward_weights)
    first, second = (tuple(part.double() for part in norm) for norm in norms)
    normed = layer_norm(x, first)
    x = x + attend(normed, normed, attention_weights, real[:, None, None, :])
    return x + feed_forward(layer_norm(x, second), feed_forward_weights)
