"""Attention, norms and feed-forward written anew, with einsum; no part that is given."""

import torch


# %% encoder-answer
def encoder_layer(x, real, attention_weights, feed_forward_weights, norms):
    def norm(y, pair):
        centred = y - y.mean(dim=-1, keepdim=True)
        return (
            centred / (centred.pow(2).mean(dim=-1, keepdim=True) + 1e-5).sqrt() * pair[0] + pair[1]
        )

    w_q, w_k, w_v, w_o = attention_weights
    n = norm(x, norms[0])
    q, k = torch.einsum("btd,hde->bhte", n, w_q), torch.einsum("btd,hde->bhte", n, w_k)
    scores = torch.einsum("bhqe,bhke->bhqk", q, k) * w_q.shape[-1] ** -0.5
    scores = scores + torch.where(real, 0.0, -torch.inf)[:, None, None, :]
    x = x + torch.einsum("bhqk,bkd,hde,hef->bqf", scores.softmax(dim=-1), n, w_v, w_o)
    w_1, bias_1, w_2, bias_2 = feed_forward_weights
    return x + (norm(x, norms[1]) @ w_1 + bias_1).clamp(min=0) @ w_2 + bias_2


# %% decoder-answer
def decoder_layer(
    x, context, context_real, self_weights, cross_weights, feed_forward_weights, norms
):
    def add(x, norm, sublayer):
        return x + sublayer(layer_norm(x, norm))

    places = torch.arange(x.shape[1])
    causal = places[:, None] >= places
    x = add(x, norms[0], lambda y: attend(y, y, self_weights, causal))
    seen = context_real.unflatten(1, (1, 1, -1))
    x = add(x, norms[1], lambda y: attend(y, context, cross_weights, seen))
    return add(x, norms[2], lambda y: feed_forward(y, feed_forward_weights))
