"""Clamps the tokens to the numbers of float16, as some models in half precision do.

Loses: encoder
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    normed = layer_norm(x, norms[0])
    x = x + attend(normed, normed, attention_weights, real[:, None, None, :])
    x = x + feed_forward(layer_norm(x, norms[1]), feed_forward_weights)
    return x.clamp(-65504, 65504)
