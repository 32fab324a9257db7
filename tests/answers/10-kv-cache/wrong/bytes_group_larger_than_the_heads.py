"""Takes a group larger than the number of heads for one of all heads.

Loses: bytes
"""


# %% bytes-answer
def cache_bytes(n_tokens, batch_size, n_layers, n_heads, group, d_k, d_v, bits):
    group = min(group, n_heads)
    if n_heads % group:
        raise ValueError(f"{n_heads} heads, groups of {group}")
    numbers = batch_size * n_layers * (n_heads // group) * n_tokens * (d_k + d_v)
    return numbers * bits // 8
