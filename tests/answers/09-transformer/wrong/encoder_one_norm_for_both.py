"""The first norm serves both sublayers.

Loses: encoder, encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    normed = layer_norm(x, norms[0])
    x = x + attend(normed, normed, attention_weights, real[:, None, None, :])
    return x + feed_forward(layer_norm(x, norms[0]), feed_forward_weights)
