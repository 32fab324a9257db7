"""Written with loops over single pairs."""

import torch


# %% terms-answer
def decompose_scores(x, p, w_q, w_k):
    found = []
    for asks, asked in ((x, x), (x, p), (p, x), (p, p)):
        texts = []
        for b in range(len(x)):
            a = asks[b] if asks.dim() == 3 else asks
            c = asked[b] if asked.dim() == 3 else asked
            rows = [torch.stack([(m @ w_q) @ (n @ w_k) for n in c]) for m in a]
            texts.append(torch.stack(rows))
        found.append(torch.stack(texts))
    return found


# %% differences-answer
def relative_positions(q_positions, k_positions):
    if q_positions.dim() > 1:
        pairs = zip(q_positions, k_positions, strict=True)
        return torch.stack([relative_positions(q, k) for q, k in pairs])
    return torch.tensor([[n - m for n in k_positions.tolist()] for m in q_positions.tolist()])


# %% bucket-answer
def relative_position_bucket(relative_position, bidirectional, num_buckets=32, max_distance=128):
    found = []
    for offset in relative_position.flatten().tolist():
        n = num_buckets // 2 if bidirectional else num_buckets
        j = abs(offset) if bidirectional else max(-offset, 0)
        e = n // 2
        bucket = min(j, e)
        for t in range(1, n - e):
            if j ** (n - e) >= max_distance**t * e ** (n - e - t):
                bucket += 1
        found.append(bucket + n if bidirectional and offset > 0 else bucket)
    return torch.tensor(found).reshape(relative_position.shape)


# %% t5-answer
def t5_scores(q, k, table, buckets):
    texts = []
    for b in range(q.shape[0]):
        own = buckets if buckets.dim() == 2 else buckets[b]
        heads = [q[b, h] @ k[b, h].T + table[:, h][own] for h in range(q.shape[1])]
        texts.append(torch.stack(heads))
    return torch.stack(texts)


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    c, scores = key_table.shape[0] // 2, []
    for b in range(q.shape[0]):
        own = relative_position if relative_position.dim() == 2 else relative_position[b]
        for m in range(q.shape[2]):
            keys = k[b] + key_table[[max(-c, min(j, c)) + c for j in own[m].tolist()]]
            scores.append(keys @ q[b, :, m].unsqueeze(-1) / q.shape[-1] ** 0.5)
    return torch.cat(scores, dim=-1).unflatten(-1, (q.shape[0], -1)).permute(2, 0, 3, 1)


# %% shaw-values-answer
def shaw_values(weights, value, value_table, relative_position):
    c, texts = value_table.shape[0] // 2, []
    for b in range(weights.shape[0]):
        own = relative_position if relative_position.dim() == 2 else relative_position[b]
        rows = []
        for m in range(weights.shape[2]):
            carried = value[b] + value_table[own[m].clip(-c, c) + c]
            rows.append((weights[b, :, m].unsqueeze(1) @ carried).squeeze(1))
        texts.append(torch.stack(rows, dim=1))
    return torch.stack(texts)
