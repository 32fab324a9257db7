"""The norms stand behind the additions, as in the paper.

Loses: encoder, encoder-precision
"""


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    x = layer_norm(x + attend(x, x, attention_weights, real[:, None, None, :]), norms[0])
    return layer_norm(x + feed_forward(x, feed_forward_weights), norms[1])
