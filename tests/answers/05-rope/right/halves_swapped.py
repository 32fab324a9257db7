"""Right, as large models write it: x · cos + (x with swapped halves) · sin, with wide tables."""

import torch


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    def rotate_half(x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((-b, a), dim=-1)

    def rotate_every_two(x):
        return torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)

    if layout == "half":
        cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)
        return (x * cos + rotate_half(x) * sin).to(x.dtype)
    cos, sin = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
    return (x * cos + rotate_every_two(x) * sin).to(x.dtype)


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    def turned(x, positions):
        wide = 2 * len(frequencies)
        angles = torch.einsum("bt,i->bti", positions.double(), frequencies)
        angles = torch.cat((angles, angles), dim=-1).unsqueeze(1)
        part, rest = x[..., :wide], x[..., wide:]
        a, b = part.chunk(2, dim=-1)
        part = part * angles.cos() + torch.cat((-b, a), dim=-1) * angles.sin()
        return torch.cat((part.to(x.dtype), rest), dim=-1)

    return turned(query, q_positions), turned(key, k_positions)


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    cut = (n_heads, -1, 2) if layout == "half" else (n_heads, 2, -1)
    return rows.unflatten(0, cut).transpose(1, 2).flatten(0, 2)
