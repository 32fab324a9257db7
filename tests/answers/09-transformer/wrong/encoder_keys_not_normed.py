"""Only the queries are normed.

Loses: encoder, encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    x = x + attend(layer_norm(x, norms[0]), x, attention_weights, real[:, None, None, :])
    return x + feed_forward(layer_norm(x, norms[1]), feed_forward_weights)
