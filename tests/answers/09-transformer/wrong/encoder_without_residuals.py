"""Nothing is added to what goes into a sublayer.

Loses: encoder, encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    normed = layer_norm(x, norms[0])
    x = attend(normed, normed, attention_weights, real[:, None, None, :])
    return feed_forward(layer_norm(x, norms[1]), feed_forward_weights)
