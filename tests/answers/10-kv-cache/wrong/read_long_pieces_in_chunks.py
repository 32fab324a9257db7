"""Reads a long piece in chunks of 64 tokens, and calls update for each of them.

Loses: read-pieces
"""

# %% read-answer
import torch

CHUNK = 64


def read(tokens, start, model, update):
    new = tokens.shape[1]
    if new > CHUNK:
        parts = []
        for piece in tokens.split(CHUNK, dim=1):
            parts.append(read(piece, start, model, update))
            start += piece.shape[1]
        return torch.cat(parts, dim=1)
    embedding, layers, output, n_heads, n_kv_heads = model
    positions = torch.arange(start, start + new, device=tokens.device)
    x = embedding[tokens]
    for number, (w_q, w_k, w_v, w_o, w_in, w_out) in enumerate(layers):
        rows = normed(x)
        q = turn(split_heads(rows @ w_q, n_heads), positions)
        k = turn(split_heads(rows @ w_k, n_kv_heads), positions)
        v = split_heads(rows @ w_v, n_kv_heads)
        keys, values = update(number, k, v)
        k_len = keys.shape[2]
        mask = torch.ones(new, k_len, dtype=torch.bool).tril(k_len - new)
        x = x + merge_heads(attend(q, keys, values, mask)) @ w_o
        x = x + torch.relu(normed(x) @ w_in) @ w_out
    return normed(x) @ output
