"""The normed tokens are added, not the tokens.

Loses: encoder, encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    normed = layer_norm(x, norms[0])
    x = normed + attend(normed, normed, attention_weights, real[:, None, None, :])
    normed = layer_norm(x, norms[1])
    return normed + feed_forward(normed, feed_forward_weights)
