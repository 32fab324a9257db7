"""Counts the positions in the dtype of the tokens.

Loses: read-pieces-precision
"""

# %% read-answer
import torch


def read(tokens, start, model, update):
    embedding, layers, output, n_heads, n_kv_heads = model
    new = tokens.shape[1]
    positions = torch.arange(new, device=tokens.device, dtype=tokens.dtype) + start
    x = embedding[tokens]
    for number, (w_q, w_k, w_v, w_o, w_in, w_out) in enumerate(layers):
        rows = normed(x)
        q = turn(split_heads(rows @ w_q, n_heads), positions)
        k = turn(split_heads(rows @ w_k, n_kv_heads), positions)
        v = split_heads(rows @ w_v, n_kv_heads)
        keys, values = update(number, k, v)
        old = keys.shape[2] - new
        columns = torch.arange(keys.shape[2], device=tokens.device)
        seen = columns <= old + torch.arange(new, device=tokens.device).unsqueeze(-1)
        x = x + merge_heads(attend(q, keys, values, seen)) @ w_o
        x = x + torch.relu(normed(x) @ w_in) @ w_out
    return normed(x) @ output
