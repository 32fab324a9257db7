"""Drops a part of a byte for each text, before the texts are put together.

Loses: bytes
"""


# %% bytes-answer
def cache_bytes(n_tokens, batch_size, n_layers, n_heads, group, d_k, d_v, bits):
    if n_heads % group:
        raise ValueError(f"{group} does not divide {n_heads}")
    numbers = n_layers * (n_heads // group) * n_tokens * (d_k + d_v)
    return batch_size * (numbers * bits // 8)
