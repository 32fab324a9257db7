"""Right, with loops over pairs, positions, heads and texts."""

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    found, theta = [], 1.0
    for _ in range(head_dim // 2):
        found.append(theta)
        theta *= base ** (-2 / head_dim)
    return torch.tensor(found, dtype=torch.float64)


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    columns = [(positions.double() * float(theta)) for theta in frequencies]
    cos = torch.stack([torch.cos(angles) for angles in columns], dim=-1)
    sin = torch.stack([torch.sin(angles) for angles in columns], dim=-1)
    return cos.to(dtype), sin.to(dtype)


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    pairs = x.shape[-1] // 2
    columns = [None] * (2 * pairs)
    for i in range(pairs):
        one, two = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + pairs)
        a, b = x[..., one], x[..., two]
        columns[one] = a * cos[..., i] - b * sin[..., i]
        columns[two] = a * sin[..., i] + b * cos[..., i]
    return torch.stack(columns, dim=-1).to(x.dtype)


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    found = []
    for x, positions in ((query, q_positions), (key, k_positions)):
        r, texts = len(frequencies), []
        for text, row in zip(x, positions, strict=True):
            tokens = []
            for t, position in enumerate(row.tolist()):
                parts = list(text[:, t].double().unbind(-1))
                for i in range(r):
                    angle = position * frequencies[i]
                    a, b = parts[i], parts[i + r]
                    parts[i] = a * torch.cos(angle) - b * torch.sin(angle)
                    parts[i + r] = a * torch.sin(angle) + b * torch.cos(angle)
                tokens.append(torch.stack(parts, dim=-1))
            texts.append(torch.stack(tokens, dim=1))
        found.append(torch.stack(texts).to(x.dtype))
    return found


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    total = 0
    for i, theta in enumerate(frequencies):
        q = query[..., 2 * i : 2 * i + 2]
        k = key[..., 2 * i : 2 * i + 2]
        cos, sin = torch.cos(offsets * theta), torch.sin(offsets * theta)
        side = torch.stack((-q[..., 1], q[..., 0]), dim=-1)  # a quarter of a turn
        total = total + (q @ k.transpose(-2, -1)) * cos - (side @ k.transpose(-2, -1)) * sin
    return total


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    found = torch.empty_like(rows)
    d = len(rows) // n_heads
    for row in range(len(rows)):
        head, place = divmod(row, d)
        if layout == "half":
            found[row] = rows[head * d + 2 * (place % (d // 2)) + place // (d // 2)]
        else:
            found[row] = rows[head * d + place % 2 * (d // 2) + place // 2]
    return found


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    if wanted_len <= trained_len:
        return frequencies.clone()
    return torch.stack([theta * trained_len / wanted_len for theta in frequencies])
