"""The feed-forward part comes before the attention.

Loses: encoder, encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    x = x + feed_forward(layer_norm(x, norms[1]), feed_forward_weights)
    normed = layer_norm(x, norms[0])
    return x + attend(normed, normed, attention_weights, real[:, None, None, :])
