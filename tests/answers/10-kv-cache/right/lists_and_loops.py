"""Written with lists and loops: a list of tokens as the cache, one row of attention at a time."""

import math

import torch


# %% cache-answer
class KVCache:
    def __init__(self, batch_size, n_kv_heads, max_len, head_dim, value_dim, dtype, device="cpu"):
        self.max_len = max_len
        self.empty = [
            torch.empty(batch_size, n_kv_heads, 0, width, dtype=dtype, device=device)
            for width in (head_dim, value_dim)
        ]
        self.tokens = []

    @property
    def length(self):
        return len(self.tokens)

    def update(self, k, v):
        for new, empty in zip((k, v), self.empty, strict=True):
            if new[:, :, :0].shape != empty.shape or new.dtype != empty.dtype:
                raise ValueError(f"{new.shape}, {new.dtype} in place of {empty.shape}")
        if k.shape[2] != v.shape[2] or self.length + k.shape[2] > self.max_len:
            raise ValueError(f"{k.shape[2]} keys, {v.shape[2]} values, {self.length} held")
        for n in range(k.shape[2]):
            self.tokens.append((k[:, :, n : n + 1].clone(), v[:, :, n : n + 1].clone()))
        return tuple(
            torch.cat([self.empty[part]] + [token[part] for token in self.tokens], dim=2)
            for part in (0, 1)
        )

    def truncate(self, length):
        if length < 0 or length > len(self.tokens):
            raise ValueError(f"{length} of {len(self.tokens)}")
        while len(self.tokens) > length:
            self.tokens.pop()

    def reset(self):
        self.tokens = []


# %% read-answer
def read(tokens, start, model, update):
    embedding, layers, output, n_heads, n_kv_heads = model
    batch, new = tokens.shape
    x = torch.stack([embedding[row] for row in tokens])
    for layer, weights in enumerate(layers):
        w_q, w_k, w_v, w_o, w_in, w_out = weights
        rows = normed(x)
        places = torch.tensor([start + i for i in range(new)])
        k = turn(split_heads(rows @ w_k, n_kv_heads), places)
        keys, values = update(layer, k, split_heads(rows @ w_v, n_kv_heads))
        q = turn(split_heads(rows @ w_q, n_heads), places)
        mixed = torch.zeros(batch, new, n_heads, values.shape[-1], dtype=x.dtype)
        for i in range(new):
            last = keys.shape[2] - new + i + 1
            for h in range(n_heads):
                j = h // (n_heads // n_kv_heads)
                scores = (keys[:, j, :last] * q[:, h, i].unsqueeze(1)).sum(-1)
                weights = torch.softmax(scores / math.sqrt(q.shape[-1]), dim=-1)
                mixed[:, i, h] = (weights.unsqueeze(-1) * values[:, j, :last]).sum(1)
        x = x + mixed.flatten(2) @ w_o
        x = x + torch.relu(normed(x) @ w_in) @ w_out
    return normed(x) @ output


# %% generate-answer
def generate(model, prompt, max_new_tokens, end_token, use_cache):
    texts = [list(row) for row in prompt.tolist()]
    given = prompt
    start = 0
    new = []
    for _ in range(max_new_tokens):
        logits = model(given, start)
        column = []
        for row, text in enumerate(texts):
            token = int(logits[row, -1].argmax())
            if end_token is not None and end_token in text[prompt.shape[1] :]:
                token = end_token
            text.append(token)
            column.append(token)
        new.append(column)
        if use_cache:
            start = len(texts[0]) - 1
            given = torch.tensor(column).unsqueeze(1)
        else:
            given = torch.tensor(texts)
        if all(end_token in text[prompt.shape[1] :] for text in texts):
            break
    return torch.tensor(new).T


# %% bytes-answer
def cache_bytes(n_tokens, batch_size, n_layers, n_heads, group, d_k, d_v, bits):
    heads = [h for h in range(n_heads) if h % group == 0]
    if group * len(heads) != n_heads:
        raise ValueError(f"{n_heads} heads in groups of {group}")
    total = 0
    for _ in range(batch_size * n_layers):
        for _ in heads:
            total += n_tokens * (d_k * bits + d_v * bits)
    return round(total / 8)


# %% timer-answer
def time_call(work, wait, clock, warmup, repeats):
    seconds = []
    for call in range(warmup + repeats):
        wait()
        begin = clock()
        work()
        wait()
        end = clock()
        if call >= warmup:
            seconds.append(end - begin)
    seconds.sort()
    middle = repeats // 2
    return seconds[middle] if repeats % 2 else (seconds[middle - 1] + seconds[middle]) / 2


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    times = {False: [], True: []}
    for t in lengths:
        for without, with_cache in zip(
            logits(False, t).tolist(), logits(True, t).tolist(), strict=True
        ):
            if not abs(without - with_cache) <= tolerance:
                raise ValueError(f"{without} and {with_cache}")
        now = {False: [], True: []}
        for _ in range(rounds):
            for use_cache in (False, True):
                now[use_cache].append(seconds(use_cache, t))
        for use_cache, seen in now.items():
            times[use_cache].append(seen)
    return [device, [*lengths], times[False], times[True]]


# %% crossover-answer
def crossover(lengths, uncached, cached, threshold=1.2):
    above = []
    for slow, fast in zip(uncached, cached, strict=True):
        ratios = sorted(a / b for a, b in zip(slow, fast, strict=True))
        place = (len(ratios) - 1) / 4
        left = int(place)
        right = min(left + 1, len(ratios) - 1)
        quartile = ratios[left] + (place - left) * (ratios[right] - ratios[left])
        above.append(quartile > threshold)
    for i, length in enumerate(lengths):
        if all(above[i:]):
            return length
    return None
