"""Right, with loops over texts, queries, keys, features and tokens."""

import torch


# %% window-answer
def sliding_window_mask(q_positions, k_positions, window, causal):
    mask = torch.zeros(
        len(q_positions), q_positions.shape[1], k_positions.shape[1], dtype=torch.bool
    )
    for b, (queries, keys) in enumerate(
        zip(q_positions.tolist(), k_positions.tolist(), strict=True)
    ):
        for i, m in enumerate(queries):
            for j, n in enumerate(keys):
                mask[b, i, j] = m - window <= n <= (m if causal else m + window)
    return mask


# %% global-answer
def add_global_tokens(mask, q_positions, k_positions, global_positions, causal):
    found = mask.clone()
    special = set(global_positions.tolist())
    for b in range(mask.shape[0]):
        for i, m in enumerate(q_positions[b].tolist()):
            for j, n in enumerate(k_positions[b].tolist()):
                if (m in special or n in special) and (n <= m or not causal):
                    found[b, i, j] = True
    return found


# %% linformer-answer
def linformer_attention(query, key, value, key_projection, value_projection):
    n_heads = query.shape[1]
    outputs, all_weights = [], []
    for h in range(n_heads):
        e = key_projection[h] if key_projection.dim() == 3 else key_projection
        f = value_projection[h] if value_projection.dim() == 3 else value_projection
        keys = torch.stack([(row[:, None] * key[:, h]).sum(dim=1) for row in e], dim=1)
        values = torch.stack([(row[:, None] * value[:, h]).sum(dim=1) for row in f], dim=1)
        scores = query[:, h] @ keys.mT / query.shape[-1] ** 0.5
        powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        all_weights.append(powers / powers.sum(dim=-1, keepdim=True))
        outputs.append(all_weights[-1] @ values)
    return torch.stack(outputs, dim=1), torch.stack(all_weights, dim=1)


# %% features-answer
def positive_features(x, projection):
    scaled = x * x.shape[-1] ** -0.25
    columns = [(scaled * row).sum(dim=-1) - (scaled * scaled).sum(dim=-1) / 2 for row in projection]
    return torch.stack(columns, dim=-1).exp()


# %% linear-answer
def linear_attention(log_query_features, log_key_features, value):
    rows = []
    for m in range(log_query_features.shape[2]):
        both = log_query_features[:, :, m, None, :] + log_key_features
        w = torch.softmax(torch.logsumexp(both, dim=-1), dim=-1)
        rows.append((w.unsqueeze(-1) * value).sum(dim=2))
    return torch.stack(rows, dim=2)


# %% piece-answer
def read_piece(query_features, key_features, value, s, z):
    outputs = []
    for q, k, v in zip(
        query_features.unbind(2), key_features.unbind(2), value.unbind(2), strict=True
    ):
        s = s + k.unsqueeze(-1) * v.unsqueeze(-2)
        z = z + k
        outputs.append((q.unsqueeze(-2) @ s).squeeze(-2) / (q * z).sum(dim=-1, keepdim=True))
    return torch.stack(outputs, dim=2), s, z
