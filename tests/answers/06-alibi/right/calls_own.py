"""Task 4 takes the bias from task 3, with a mask that may attend."""

import torch


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    m, n = q_positions.to(torch.int64)[..., None], k_positions.to(torch.int64)[..., None, :]
    distance = torch.maximum(m - n, n - m)
    return torch.einsum("h,...qk->...hqk", -slopes, distance.to(slopes.dtype))


# %% attention-answer
def alibi_attention(query, key, value, slopes, q_positions, k_positions, causal):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * query.shape[-1] ** -0.5
    scores = scores + alibi_bias(slopes, q_positions, k_positions)
    if not causal:
        weights = scores.softmax(dim=-1)
        return torch.einsum("bhqk,bhkd->bhqd", weights, value), weights
    mask = (k_positions[:, None] <= q_positions[:, :, None]).unsqueeze(1)
    scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1) * mask
    return torch.einsum("bhqk,bhkd->bhqd", weights, value), weights
