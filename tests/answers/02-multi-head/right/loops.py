"""Written with loops over the heads and slices of the columns."""

import torch


# %% split-heads-answer
def split_heads(x, n_heads):
    d = x.shape[-1] // n_heads
    return torch.stack([x[..., h * d : (h + 1) * d] for h in range(n_heads)], dim=-3)


# %% merge-heads-answer
def merge_heads(x):
    return torch.cat([x.select(-3, h) for h in range(x.shape[-3])], dim=-1)


# %% attention-mask-answer
def attention_mask(real, q_len, causal):
    k_len = real.shape[1]
    texts = []
    for row in real.tolist():
        texts.append(
            [
                [row[n] and (not causal or n <= i + k_len - q_len) for n in range(k_len)]
                for i in range(q_len)
            ]
        )
    return torch.tensor(texts).unsqueeze(1)


# %% multi-head-answer
def multi_head_attention(x, context, w_q, w_k, w_v, w_o, n_heads, mask=None):
    context = x if context is None else context
    d_k, d_v = w_q.shape[1] // n_heads, w_v.shape[1] // n_heads
    shape = x.shape[0], n_heads, x.shape[1], context.shape[1]
    mask = None if mask is None else mask.expand(shape)
    output, lists = 0, []
    for h in range(n_heads):
        columns, places = slice(h * d_k, (h + 1) * d_k), slice(h * d_v, (h + 1) * d_v)
        query, key = x @ w_q[:, columns], context @ w_k[:, columns]
        value = context @ w_v[:, places]
        seen = None if mask is None else mask[:, h]
        head, weights = attention(query, key, value, seen)
        output = output + head @ w_o[places]
        lists.append(weights)
    return output, torch.stack(lists, dim=1)


# %% head-contributions-answer
def head_contributions(heads, w_o):
    d_v = heads.shape[-1]
    terms = [heads[:, h] @ w_o[h * d_v : (h + 1) * d_v] for h in range(heads.shape[1])]
    return torch.stack(terms, dim=1)


# %% there-and-back-answer
def there_and_back(attend, x, mask, order):
    places = order.tolist()
    rows = torch.stack([x[:, m] for m in places], dim=1)
    if mask is not None:
        moved = torch.empty_like(mask)
        for m, a in enumerate(places):
            for n, b in enumerate(places):
                moved[..., m, n] = mask[..., a, b]
        mask = moved
    result = attend(rows, mask)
    return torch.stack([result[:, places.index(t)] for t in range(len(places))], dim=1)
