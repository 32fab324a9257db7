"""The mask is made once, with the number of keys of layer 0, and used in all layers.

Loses: read-pieces
"""

from collections.abc import Callable

import torch


# %% read-answer
def read(
    tokens: torch.Tensor,
    start: int,
    model: tuple,
    update: Callable[[int, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
) -> torch.Tensor:
    """Take new tokens, and no others, through the model."""
    embedding, layers, output, n_heads, n_kv_heads = model
    new = tokens.shape[1]
    positions = start + torch.arange(new, device=tokens.device)
    x = embedding[tokens]
    for layer, (w_q, w_k, w_v, w_o, w_in, w_out) in enumerate(layers):
        rows = normed(x)
        q = turn(split_heads(rows @ w_q, n_heads), positions)
        k = turn(split_heads(rows @ w_k, n_kv_heads), positions)
        v = split_heads(rows @ w_v, n_kv_heads)
        keys, values = update(layer, k, v)
        if layer == 0:  # the same for all layers
            k_len = keys.shape[2]
            columns = torch.arange(k_len, device=tokens.device)
            mask = columns <= columns[k_len - new :].unsqueeze(-1)  # (new, k_len)
        x = x + merge_heads(attend(q, keys, values, mask)) @ w_o
        x = x + torch.relu(normed(x) @ w_in) @ w_out
    return normed(x) @ output
