"""Right, with complex numbers: a turn is a product."""

import torch


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = positions[..., None].double() * frequencies
    spin = torch.polar(torch.ones_like(angles), angles)
    return spin.real.to(dtype), spin.imag.to(dtype)


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    wide = torch.promote_types(x.dtype, cos.dtype)
    shape = (-1, 2) if layout == "interleaved" else (2, -1)
    pairs = x.to(wide).unflatten(-1, shape)
    if layout == "half":
        pairs = pairs.transpose(-2, -1)
    z = torch.view_as_complex(pairs.contiguous()) * torch.complex(cos.to(wide), sin.to(wide))
    pairs = torch.view_as_real(z)
    if layout == "half":
        pairs = pairs.transpose(-2, -1)
    return pairs.flatten(-2).to(x.dtype)


# %% heads-answer
def rotate_queries_and_keys(query, key, q_positions, k_positions, frequencies):
    def turned(x, positions):
        r = len(frequencies)
        wide = x.double()
        z = torch.complex(wide[..., :r].contiguous(), wide[..., r : 2 * r].contiguous())
        z = z * torch.exp(1j * (positions[:, None, :, None] * frequencies))
        return torch.cat((z.real, z.imag, wide[..., 2 * r :]), dim=-1).to(x.dtype)

    return turned(query, q_positions), turned(key, k_positions)


# %% relative-answer
def relative_scores(query, key, offsets, frequencies):
    def as_complex(x):
        return torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())

    products = as_complex(query).conj().unsqueeze(-2) * as_complex(key).unsqueeze(-3)
    return (products * torch.exp(1j * (offsets.unsqueeze(-1) * frequencies))).real.sum(dim=-1)
