"""Right, the later tasks built from the earlier ones, in a copy of a wider dtype."""

import math

import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
    return torch.exp(-exponents * math.log(base))


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions.double().unsqueeze(-1) * frequencies
    return torch.stack((angles, angles + math.pi / 2)).sin().to(dtype).flip(0).unbind(0)


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    dtype, x = x.dtype, x.double()
    if layout == "interleaved":
        d = x.shape[-1]
        order = torch.cat((torch.arange(0, d, 2), torch.arange(1, d, 2)))
        back = torch.argsort(order)
        return apply_rope(x[..., order], cos, sin, "half")[..., back].to(dtype)
    half = x.shape[-1] // 2
    result = torch.zeros_like(x)
    result[..., :half] = x[..., :half] * cos - x[..., half:] * sin
    result[..., half:] = x[..., half:] * cos + x[..., :half] * sin
    return result.to(dtype)


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    width = 2 * len(frequencies)
    found = []
    for x, positions in ((query, q_positions), (key, k_positions)):
        cos, sin = rope_tables(positions, frequencies, torch.float64)
        x_new = x.clone()
        part = apply_rope(x[..., :width], cos[:, None], sin[:, None], "half")
        x_new[..., :width] = part
        found.append(x_new)
    return found[0], found[1]


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    cos, sin = rope_tables(offsets, frequencies, torch.float64)
    keys = key.unsqueeze(-3).expand(*query.shape[:-1], *key.shape[-2:])  # once for each query
    keys = apply_rope(keys, cos, sin, "interleaved")
    return (query.unsqueeze(-2) * keys).sum(dim=-1)
