"""Right, with the sink as a gate, rotations as complex numbers, and absorbed matrices."""

import math

import torch


# %% block-answer
def add_block(scores, value, largest, total, weighted):
    # The state of the block alone, and then a merge of two states.
    top = scores.amax(-1)
    finite = top.clamp(min=torch.finfo(top.dtype).min)
    terms = (scores - finite[..., None]).exp()
    states = (largest, total, weighted), (top, terms.sum(-1), terms @ value)
    new = torch.stack((largest, top)).amax(0)
    level = torch.where(new.isinf(), torch.zeros_like(new), new)
    shrink = [(state[0] - level).exp() for state in states]
    z = sum(s * state[1] for s, state in zip(shrink, states, strict=True))
    u = sum(s[..., None] * state[2] for s, state in zip(shrink, states, strict=True))
    return new, z, u


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    seen = mask[:, None]
    blind = ~seen.any(-1, keepdim=True)
    scores = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~seen & ~blind, -math.inf)
    gate = torch.sigmoid(scores.logsumexp(-1, keepdim=True) - sinks[:, None, None])
    weights = (gate * scores.softmax(-1)).masked_fill(blind, 0.0)
    return weights @ value, weights


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    wide = x if x.dtype == torch.float64 else x.float()
    normed = wide * (wide.pow(2).mean(-1, keepdim=True) + epsilon).rsqrt() * gain.to(wide.dtype)
    pairs = torch.view_as_complex(normed.double().unflatten(-1, (-1, 2)).contiguous())
    theta = torch.tensor(base, dtype=torch.float64) ** -torch.linspace(
        0, 1, x.shape[-1] // 2 + 1, dtype=torch.float64
    )
    turn = torch.exp(1j * positions.double()[:, None, :, None] * theta[:-1])
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


# %% latent-answer
def latent_attention(query, entries, w_uk, w_uv, cache):
    held = torch.cat([cache, entries], dim=1)
    d_lat, d_k = w_uk.shape[1], w_uk.shape[2]
    absorbed = torch.cat([query[..., :d_k] @ w_uk.mT, query[..., d_k:]], dim=-1)
    scores = torch.einsum("bhme,bne->bhmn", absorbed, held) * query.shape[-1] ** -0.5
    n, m = torch.arange(held.shape[1]), torch.arange(entries.shape[1]) + cache.shape[1]
    scores = scores.masked_fill(n > m[:, None], -math.inf)
    return scores.softmax(-1) @ held[:, None, :, :d_lat] @ w_uv, held


# %% absorbed-answer
def absorbed_attention(query, w_uk, w_uv, attend):
    q, p = query.tensor_split([w_uk.shape[2]], dim=-1)
    sent = torch.cat([torch.einsum("bhmk,hlk->bhml", q, w_uk), p], dim=-1)
    scaled = sent * query.shape[-1] ** -0.5
    return torch.einsum("bhml,hlv->bhmv", attend(scaled, 1.0), w_uv)
