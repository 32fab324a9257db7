"""Written with loops over single numbers."""

import math

import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    slopes, ratio = [], 2 ** (-8 / n_heads)
    for _ in range(n_heads):
        slopes.append(slopes[-1] * ratio if slopes else ratio)
    return torch.tensor(slopes, dtype=torch.float64)


# %% official-answer
def official_slopes(n_heads):
    power = 1
    while 2 * power <= n_heads:
        power = 2 * power
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    for j in range(n_heads - power):
        slopes.append(2 ** (-8 * (2 * j + 1) / (2 * power)))
    return torch.tensor(slopes, dtype=torch.float64)


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    if q_positions.dim() == k_positions.dim() == 1:
        bias = slopes.new_zeros(len(slopes), len(q_positions), len(k_positions))
        for h in range(len(slopes)):
            for i, m in enumerate(q_positions.tolist()):
                for j, n in enumerate(k_positions.tolist()):
                    bias[h, i, j] = -slopes[h] * abs(m - n)
        return bias
    leading = torch.broadcast_shapes(q_positions.shape[:-1], k_positions.shape[:-1])
    queries = q_positions.expand(*leading, q_positions.shape[-1])
    keys = k_positions.expand(*leading, k_positions.shape[-1])
    pairs = zip(queries, keys, strict=True)
    return torch.stack([alibi_bias(slopes, *pair) for pair in pairs])


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    batch, heads, q_len, d_k = query.shape
    outputs, rows = [], []
    for b in range(batch):
        for h in range(heads):
            for i in range(q_len):
                distance = (q_positions[b, i] - k_positions[b]).to(query.dtype)
                seen = distance >= 0 if causal else torch.full_like(distance, True).bool()
                row = torch.zeros_like(distance)
                if seen.any():
                    scores = key[b, h, seen] @ query[b, h, i] / d_k**0.5
                    shares = torch.softmax(scores - slopes[h] * distance[seen].abs(), dim=0)
                    row = row.masked_scatter(seen, shares)
                rows.append(row)
                outputs.append(row @ value[b, h])
    shape = (batch, heads, q_len, -1)
    return torch.stack(outputs).view(shape), torch.stack(rows).view(shape)


# %% read-on-answer
def read_on(attend, query, key, value, past_key, past_value, past_positions):
    keys, values, positions, outputs = past_key, past_value, past_positions, []
    for i in range(query.shape[2]):  # one token after the other
        last = [max(row, default=-1) for row in positions.tolist()]
        new = torch.tensor([[each + 1] for each in last])
        keys = torch.cat((keys, key[:, :, i : i + 1]), dim=2)
        values = torch.cat((values, value[:, :, i : i + 1]), dim=2)
        positions = torch.cat((positions, new), dim=1)
        outputs.append(attend(query[:, :, i : i + 1], keys, values, new, positions))
    return torch.cat(outputs, dim=2), keys, values, positions


# %% window-answer
def window(slopes, epsilon, bound):
    windows = []
    for slope in slopes.tolist():
        d = 0
        while math.exp(2 * bound) * math.exp(-slope * d) > epsilon:
            d += 1
        windows.append(d)
    return torch.tensor(windows)
