"""Divides the bits as a float and makes an int of it: beyond 2⁵³ bytes are rounded.

Loses: bytes
"""


# %% bytes-answer
def cache_bytes(n_tokens, batch_size, n_layers, n_heads, group, d_k, d_v, bits):
    if n_heads % group:
        raise ValueError(f"{group} does not divide {n_heads}")
    numbers = batch_size * n_layers * (n_heads // group) * n_tokens * (d_k + d_v)
    return int(numbers * bits / 8)
