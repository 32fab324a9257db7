"""The cache grows by concatenation within its limit, and a single token needs no mask."""

import numpy as np
import torch


# %% cache-answer
class KVCache:
    def __init__(self, batch_size, n_kv_heads, max_len, head_dim, value_dim, dtype, device="cpu"):
        self.max_len = max_len
        self.held = tuple(
            torch.zeros(batch_size, n_kv_heads, 0, width, dtype=dtype, device=device)
            for width in (head_dim, value_dim)
        )
        self.length = 0

    def update(self, k, v):
        for new, held in zip((k, v), self.held, strict=True):
            if new.dtype != held.dtype:
                raise ValueError(f"{new.dtype} for a cache in {held.dtype}")
        try:
            grown = tuple(
                torch.cat([held, new], dim=2) for new, held in zip((k, v), self.held, strict=True)
            )
        except RuntimeError as problem:
            raise ValueError(str(problem)) from problem
        if grown[0].shape[2] != grown[1].shape[2] or grown[0].shape[2] > self.max_len:
            raise ValueError(f"{grown[0].shape[2]} of {self.max_len}")
        self.held, self.length = grown, grown[0].shape[2]
        return grown

    def truncate(self, length):
        if length not in range(self.length + 1):
            raise ValueError(f"{length} of {self.length}")
        self.held, self.length = tuple(part[:, :, :length] for part in self.held), length

    def reset(self):
        self.truncate(0)


# %% read-answer
def read(tokens, start, model, update):
    def layer_of(x, number, layer):
        w_q, w_k, w_v, w_o, w_in, w_out = layer
        rows = normed(x)
        q, k = (
            turn(split_heads(rows @ w, n), torch.arange(start, start + tokens.shape[1]))
            for w, n in ((w_q, n_heads), (w_k, n_kv_heads))
        )
        keys, values = update(number, k, split_heads(rows @ w_v, n_kv_heads))
        mask = None
        if tokens.shape[1] > 1:
            old = keys.shape[2] - tokens.shape[1]
            seen = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
            mask = torch.cat([torch.ones(tokens.shape[1], old, dtype=torch.bool), seen], dim=1)
        x = x + merge_heads(attend(q, keys, values, mask)) @ w_o
        return x + torch.relu(normed(x) @ w_in) @ w_out

    embedding, layers, output, n_heads, n_kv_heads = model
    x = embedding[tokens]
    for number, layer in enumerate(layers):
        x = layer_of(x, number, layer)
    return normed(x) @ output


# %% generate-answer
def generate(model, prompt, max_new_tokens, end_token, use_cache):
    batch, prompt_len = prompt.shape
    table = torch.zeros(batch, prompt_len + max_new_tokens, dtype=torch.int64)
    table[:, :prompt_len] = prompt
    first = 0
    for end in range(prompt_len, prompt_len + max_new_tokens):
        logits = model(table[:, first:end], first)
        table[:, end] = logits[:, -1].max(dim=-1).indices
        if use_cache:
            first = end
        if end_token is not None:
            over = (table[:, prompt_len:end] == end_token).any(dim=1)
            table[over, end] = end_token
            if (table[:, prompt_len : end + 1] == end_token).any(dim=1).all():
                return table[:, prompt_len : end + 1]
    return table[:, prompt_len:]


# %% timer-answer
def time_call(work, wait, clock, warmup, repeats):
    def once():
        wait()
        begin = clock()
        work()
        wait()
        return clock() - begin

    return float(np.median([once() for _ in range(warmup + repeats)][warmup:]))


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    low = [np.percentile(np.divide(a, b), 25) for a, b in zip(uncached, cached, strict=True)]
    last_below = max((i for i, value in enumerate(low) if value <= threshold), default=-1)
    return lengths[last_below + 1] if last_below + 1 < len(lengths) else None
