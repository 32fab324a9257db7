"""The mask has no dimension for the heads: with as many texts as heads, each head takes a text's.

Loses: encoder, encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    normed = layer_norm(x, norms[0])
    x = x + attend(normed, normed, attention_weights, real[:, None, :])
    return x + feed_forward(layer_norm(x, norms[1]), feed_forward_weights)
