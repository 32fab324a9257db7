"""Right, with the rotation matrices written out."""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    d = x.shape[-1]
    pair = torch.arange(d // 2)
    if layout == "interleaved":
        first, second = 2 * pair, 2 * pair + 1
    else:
        first, second = pair, pair + d // 2
    wide = torch.promote_types(x.dtype, cos.dtype)
    matrix = torch.zeros(*cos.shape[:-1], d, d, dtype=wide)
    matrix[..., first, first], matrix[..., first, second] = cos.to(wide), -sin.to(wide)
    matrix[..., second, first], matrix[..., second, second] = sin.to(wide), cos.to(wide)
    return (matrix @ x.to(wide).unsqueeze(-1)).squeeze(-1).to(x.dtype)


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    d = query.shape[-1]
    lengths = query.shape[-2], key.shape[-2]
    offsets = offsets.expand(torch.broadcast_shapes(offsets.shape, lengths))
    angles = offsets.unsqueeze(-1) * frequencies
    first = torch.arange(0, d, 2)
    matrix = torch.zeros(*offsets.shape, d, d, dtype=query.dtype)
    matrix[..., first, first] = matrix[..., first + 1, first + 1] = angles.cos()
    matrix[..., first, first + 1], matrix[..., first + 1, first] = -angles.sin(), angles.sin()
    return torch.einsum("...mi,...mnij,...nj->...mn", query, matrix, key)


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    d = len(rows) // n_heads
    matrix = torch.zeros(len(rows), len(rows), dtype=rows.dtype)
    for h in range(n_heads):
        for i in range(d // 2):
            matrix[h * d + i, h * d + 2 * i] = 1
            matrix[h * d + d // 2 + i, h * d + 2 * i + 1] = 1
    return (matrix if layout == "half" else matrix.T) @ rows
