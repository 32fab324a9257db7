"""The padding is put back at the end.

Loses: encoder
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    normed = layer_norm(x, norms[0])
    y = x + attend(normed, normed, attention_weights, real[:, None, None, :])
    y = y + feed_forward(layer_norm(y, norms[1]), feed_forward_weights)
    return y.where(real[..., None], x)
