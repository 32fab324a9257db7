"""Keys and values side by side in one tensor of numbers from numpy; torch's own attention."""

import numpy as np
import torch


# %% cache-answer
class KVCache:
    def __init__(self, batch_size, n_kv_heads, max_len, head_dim, value_dim, dtype, device="cpu"):
        self.memory = torch.full(
            (max_len, batch_size, n_kv_heads, head_dim + value_dim), torch.nan, dtype=dtype
        ).to(device)
        self.widths = (head_dim, value_dim)
        self.length = 0

    def update(self, k, v):
        both = (k, v)
        expected = [(*self.memory.shape[1:3], k.shape[2], width) for width in self.widths]
        if [tuple(new.shape) for new in both] != expected:
            raise ValueError(f"{[new.shape for new in both]} in place of {expected}")
        if {new.dtype for new in both} != {self.memory.dtype}:
            raise ValueError(f"{k.dtype}, {v.dtype} in place of {self.memory.dtype}")
        if self.length + k.shape[2] > len(self.memory):
            raise ValueError(f"{self.length} + {k.shape[2]} is more than {len(self.memory)}")
        new = torch.cat(both, dim=-1).permute(2, 0, 1, 3)
        self.memory[self.length :][: len(new)] = new
        self.length += len(new)
        return self.memory[: self.length].permute(1, 2, 0, 3).split(self.widths, dim=-1)

    def truncate(self, length):
        if not -1 < length < self.length + 1:
            raise ValueError(f"{length} of {self.length}")
        self.memory[length:] = torch.nan
        self.length = length

    def reset(self):
        self.truncate(0)


# %% read-answer
def read(tokens, start, model, update):
    embedding, layers, output, n_heads, n_kv_heads = model
    new = tokens.shape[1]
    positions = torch.linspace(start, start + new - 1, new, dtype=torch.float64)
    x = torch.nn.functional.embedding(tokens, embedding)
    for layer, (w_q, w_k, w_v, w_o, w_in, w_out) in enumerate(layers):
        q, k, v = (
            split_heads(torch.einsum("btd,de->bte", normed(x), w), n)
            for w, n in ((w_q, n_heads), (w_k, n_kv_heads), (w_v, n_kv_heads))
        )
        keys, values = update(layer, turn(k, positions), v)
        many = [part.repeat_interleave(n_heads // n_kv_heads, dim=1) for part in (keys, values)]
        seen = torch.ones(new, keys.shape[2], dtype=torch.bool).tril(keys.shape[2] - new)
        mixed = torch.nn.functional.scaled_dot_product_attention(
            turn(q, positions), *many, attn_mask=seen
        )
        x = x + torch.einsum("bte,ed->btd", mixed.transpose(1, 2).flatten(2), w_o)
        x = x + (normed(x) @ w_in).clamp(min=0) @ w_out
    return normed(x) @ output


# %% generate-answer
def generate(model, prompt, max_new_tokens, end_token, use_cache):
    columns = list(prompt.T)
    going = torch.ones(len(prompt), dtype=torch.bool)
    while len(columns) < prompt.shape[1] + max_new_tokens and going.any():
        first = len(columns) - 1 if use_cache and len(columns) > prompt.shape[1] else 0
        likeliest = model(torch.stack(columns[first:], dim=1), first)[:, -1].argsort(dim=-1)[:, -1]
        if end_token is not None:
            likeliest[~going] = end_token
            going &= likeliest != end_token
        columns.append(likeliest)
    return torch.stack(columns[prompt.shape[1] :], dim=1)


# %% bytes-answer
def cache_bytes(n_tokens, batch_size, n_layers, n_heads, group, d_k, d_v, bits):
    n_kv_heads, left = divmod(n_heads, group)
    if left:
        raise ValueError(f"{n_heads} heads leave {left} with groups of {group}")
    return int(np.prod([n_tokens, batch_size, n_layers, n_kv_heads, d_k + d_v, bits])) // 8


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    table = []
    for t in lengths:
        with_cache = logits(True, t)
        off = torch.dist(logits(False, t), with_cache, p=float("inf"))
        if off > tolerance or off.isnan():
            raise ValueError("the cache gives other logits")
        table.append([(seconds(False, t), seconds(True, t)) for _ in range(rounds)])
    columns = [[[pair[way] for pair in row] for row in table] for way in (0, 1)]
    return device, list(lengths), *columns


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    ratios = torch.tensor(uncached, dtype=torch.float64) / torch.tensor(cached, dtype=torch.float64)
    above = (torch.quantile(ratios, 0.25, dim=1) > threshold).flip(0)
    stays = int(above.cumprod(dim=0).sum())
    return lengths[len(lengths) - stays] if stays else None
