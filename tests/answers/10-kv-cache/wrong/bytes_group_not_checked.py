"""Rounds the number of KV heads down where the groups do not fit.

Loses: bytes
"""


# %% bytes-answer
def cache_bytes(n_tokens, batch_size, n_layers, n_heads, group, d_k, d_v, bits):
    numbers = batch_size * n_layers * (n_heads // group) * n_tokens * (d_k + d_v)
    return numbers * bits // 8
