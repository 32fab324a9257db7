"""Right, with everything in float64, exponentials cleaned of NaN, and lists as results."""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    t, z, u = (x.double().clone() for x in (largest, total, weighted))
    s, v = scores.double(), value.double()
    for n in range(scores.shape[-1]):
        here = s[..., n]
        top = torch.maximum(t, here)
        old = torch.exp(t - top).nan_to_num(0.0)
        new = torch.exp(here - top).nan_to_num(0.0)
        z = z * old + new
        u = u * old[..., None] + new[..., None] * v[:, :, None, n]
        t = top
    return [x.to(largest.dtype) for x in (t, z, u)]


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    dtype = query.dtype
    q, k, v, z = (x.double() for x in (query, key, value, sinks))
    visible = mask[:, None]
    some = visible.any(-1, keepdim=True)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    safe = torch.where(visible | ~some, scores, -torch.inf)
    gate = torch.sigmoid(safe.logsumexp(-1, keepdim=True) - z[:, None, None])
    weights = torch.where(some, safe.softmax(-1) * gate, 0.0)
    return [(weights @ v).to(dtype), weights.to(dtype)]


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    d_k = x.shape[-1]
    wide = torch.promote_types(x.dtype, torch.float32)
    w = x.to(wide)
    w = w / torch.sqrt(w.square().mean(dim=-1, keepdim=True) + epsilon) * gain.to(wide)
    theta = torch.exp(-math.log(base) * torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
    angles = positions.double().unsqueeze(-1) * theta
    cos, sin = (f(angles).to(wide).unsqueeze(1) for f in (torch.cos, torch.sin))
    a, b = w[..., 0::2], w[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


# %% latent-answer
def latent_attention(query, entries, w_uk, w_uv, cache):
    all_entries = torch.cat([cache, entries], 1)
    n_heads, d_lat, d_k = w_uk.shape
    e, q = all_entries.double(), query.double()
    outputs = []
    for h in range(n_heads):
        sent = torch.cat([q[:, h, :, :d_k] @ w_uk[h].double().T, q[:, h, :, d_k:]], -1)
        rows = []
        for i in range(query.shape[2]):
            n = cache.shape[1] + i + 1
            s = (sent[:, i : i + 1] @ e[:, :n].mT) / query.shape[-1] ** 0.5
            rows.append(s.softmax(-1) @ e[:, :n, :d_lat])
        outputs.append(torch.cat(rows, 1) @ w_uv[h].double())
    return torch.stack(outputs, 1).to(query.dtype), all_entries
