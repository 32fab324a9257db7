"""Right, with loops over heads, keys, tokens and pairs."""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    for n in range(scores.shape[-1]):
        score = scores[..., n]
        top = torch.maximum(largest, score)
        level = torch.where(top == -math.inf, 0.0, top)
        shrink, term = torch.exp(largest - level), torch.exp(score - level)
        total = shrink * total + term
        weighted = shrink[..., None] * weighted + term[..., None] * value[:, :, None, n]
        largest = top
    return largest, total, weighted


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    outputs, rows = [], []
    for h in range(query.shape[1]):
        scores = query[:, h] @ key[:, h].mT / math.sqrt(query.shape[3])
        scores = torch.where(mask, scores, -torch.inf)
        top = torch.maximum(scores.amax(dim=-1, keepdim=True), sinks[h]).detach()
        terms, sink = torch.exp(scores - top), torch.exp(sinks[h] - top)
        rows.append(terms / (terms.sum(dim=-1, keepdim=True) + sink))
        outputs.append(rows[-1] @ value[:, h])
    return torch.stack(outputs, dim=1), torch.stack(rows, dim=1)


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    wide = x.double()
    normed = wide / (wide.square().mean(dim=-1, keepdim=True) + epsilon).sqrt() * gain.double()
    columns = []
    for i in range(x.shape[-1] // 2):
        angle = positions.double()[:, None] * base ** (-2 * i / x.shape[-1])
        a, b = normed[..., 2 * i], normed[..., 2 * i + 1]
        columns += [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    return torch.stack(columns, dim=-1).to(x.dtype)


# %% latent-answer
def latent_attention(query, entries, w_uk, w_uv, cache):
    d_lat, d_k = w_uk.shape[1:]
    outputs = []
    for i in range(entries.shape[1]):
        cache = torch.cat((cache, entries[:, i : i + 1]), dim=1)
        c, r = cache[:, :, :d_lat], cache[:, :, d_lat:]
        heads = []
        for h in range(query.shape[1]):
            keys = torch.cat((c @ w_uk[h], r), dim=-1)
            scores = (query[:, h, i, None] * keys).sum(dim=-1) / math.sqrt(d_k + r.shape[-1])
            weights = torch.softmax(scores, dim=-1)
            heads.append((weights.unsqueeze(-1) * (c @ w_uv[h])).sum(dim=1))
        outputs.append(torch.stack(heads, dim=1))
    return torch.stack(outputs, dim=2), cache


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    d_k = w_uk.shape[-1]
    sent = []
    for h in range(query.shape[1]):
        part = torch.stack([(query[:, h, :, :d_k] * row).sum(dim=-1) for row in w_uk[h]], dim=-1)
        sent.append(torch.cat((part, query[:, h, :, d_k:]), dim=-1))
    averages = attend(torch.stack(sent, dim=1), (d_k + query[0, 0, 0, d_k:].numel()) ** -0.5)
    return torch.stack([averages[:, h] @ w_uv[h] for h in range(query.shape[1])], dim=1)
