"""The mask lets everybody see everything.

Loses: encoder, encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    normed = layer_norm(x, norms[0])
    seen = real.new_ones(1)
    x = x + attend(normed, normed, attention_weights, seen)
    return x + feed_forward(layer_norm(x, norms[1]), feed_forward_weights)
