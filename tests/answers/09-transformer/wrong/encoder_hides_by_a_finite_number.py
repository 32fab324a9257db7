"""Attention written anew, with −1e9 added where a key is hidden: too little for large scores.

Loses: encoder
"""

import torch


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    w_q, w_k, w_v, w_o = attention_weights
    normed = layer_norm(x, norms[0])[:, None]
    scores = (normed @ w_q) @ (normed @ w_k).mT / w_q.shape[-1] ** 0.5
    scores = scores + torch.where(real, 0.0, -1e9)[:, None, None, :]
    x = x + (scores.softmax(dim=-1) @ (normed @ w_v) @ w_o).sum(dim=1)
    return x + feed_forward(layer_norm(x, norms[1]), feed_forward_weights)
