"""Reads with a copy of the model in float32, and converts the logits back.

Loses: read-pieces-precision
"""

import torch


# %% read-answer
def read(tokens, start, model, update):
    embedding, layers, output, n_heads, n_kv_heads = model
    new = tokens.shape[1]
    positions = torch.arange(start, start + new)
    x = embedding[tokens].float()
    for layer, weights in enumerate(layers):
        w_q, w_k, w_v, w_o, w_in, w_out = (w.float() for w in weights)
        rows = normed(x)
        q = turn(split_heads(rows @ w_q, n_heads), positions)
        k = turn(split_heads(rows @ w_k, n_kv_heads), positions)
        keys, values = update(layer, k, split_heads(rows @ w_v, n_kv_heads))
        mask = torch.ones(new, keys.shape[2], dtype=torch.bool).tril(keys.shape[2] - new)
        x = x + merge_heads(attend(q, keys, values, mask)) @ w_o
        x = x + torch.relu(normed(x) @ w_in) @ w_out
    return (normed(x) @ output.float()).to(output.dtype)
