"""Written with loops, one query and one key at a time."""

import math

import torch


# %% attention
def attention(query, key, value):
    if query.dim() > 2:
        pairs = [attention(*parts) for parts in zip(query, key, value, strict=True)]
        return torch.stack([o for o, _ in pairs]), torch.stack([w for _, w in pairs])
    rows = []
    for q in query:
        scores = torch.stack([(q * k).sum() / math.sqrt(len(q)) for k in key])
        powers = (scores - scores.max()).exp()
        rows.append(powers / powers.sum())
    weights = torch.stack(rows)
    output = sum(weights[:, n : n + 1] * value[n] for n in range(len(value)))
    return output, weights


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    if offset is None:
        offset = k_len - q_len
    rows = [[j <= i + offset for j in range(k_len)] for i in range(q_len)]
    return torch.tensor(rows)


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    if q_positions.dim() > 1:
        pairs = zip(q_positions, k_positions, strict=True)
        return torch.stack([relative_position(q, k) for q, k in pairs])
    return torch.stack([k_positions - m for m in q_positions])


# %% answer-at-answer
def answer_at(m, query, key, value, k_positions):
    rows = [r for r, n in enumerate(k_positions.tolist()) if n <= m]
    if not rows:
        return torch.zeros(value.shape[-1], dtype=value.dtype)
    scores = torch.stack([(query * key[r]).sum() / math.sqrt(len(query)) for r in rows])
    weights = torch.softmax(scores, dim=0)
    return sum(w * value[r] for w, r in zip(weights, rows, strict=True))
