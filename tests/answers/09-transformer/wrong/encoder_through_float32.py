"""Computes in float32 whatever comes, and returns the dtype of the tokens.

Loses: encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    y = x.float()
    attention_weights = tuple(part.float() for part in attention_weights)
    feed_forward_weights = tuple(part.float() for part in feed_forward_weights)
    first, second = (tuple(part.float() for part in norm) for norm in norms)
    normed = layer_norm(y, first)
    y = y + attend(normed, normed, attention_weights, real[:, None, None, :])
    return (y + feed_forward(layer_norm(y, second), feed_forward_weights)).to(x.dtype)
