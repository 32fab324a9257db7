"""Right, with torch's fused attention and norm."""

import torch
from torch.nn import functional


# %% sink-answer
def attend_with_sink(query, key, value, sinks, mask):
    # A key of zeros with a bias of z; one more value, of zeros, and an eye to read the weights.
    batch, n_heads, k_len, _ = key.shape
    bias = torch.zeros(batch, n_heads, query.shape[2], k_len, dtype=query.dtype)
    bias = bias.masked_fill(~mask[:, None], -torch.inf)
    bias = torch.cat((bias, sinks[:, None, None].expand(*bias.shape[:-1], 1)), dim=-1)
    key = functional.pad(key, (0, 0, 0, 1))
    both = torch.cat(
        (value, torch.eye(k_len, dtype=value.dtype).expand(batch, n_heads, -1, -1)), -1
    )
    both = functional.pad(both, (0, 0, 0, 1))
    result = functional.scaled_dot_product_attention(query, key, both, attn_mask=bias)
    return result[..., : value.shape[-1]], result[..., value.shape[-1] :]


# %% norm-answer
def normalize_and_rotate(x, gain, positions, base, epsilon):
    wide = torch.promote_types(x.dtype, torch.float32)
    normed = functional.rms_norm(x.to(wide), gain.shape, gain.to(wide), epsilon)
    theta = base ** -(torch.arange(0, x.shape[-1], 2).double() / x.shape[-1])
    angles = (positions.unsqueeze(-1) * theta).repeat_interleave(2, dim=-1).unsqueeze(1)
    crossed = torch.stack((-normed[..., 1::2], normed[..., ::2]), dim=-1).flatten(-2)
    return (normed * angles.cos() + crossed * angles.sin()).to(x.dtype)


# %% latent-answer
def latent_attention(query, entries, w_uk, w_uv, cache):
    held = torch.cat((cache, entries), dim=-2)
    latents, rotated = held.unsqueeze(1).split(
        [w_uk.shape[1], held.shape[-1] - w_uk.shape[1]], dim=-1
    )
    rotated = rotated.expand(-1, query.shape[1], -1, -1)
    seen = torch.ones(query.shape[2], held.shape[1]).tril(cache.shape[1]).bool()
    keys = torch.cat((latents @ w_uk, rotated), dim=-1)
    output = functional.scaled_dot_product_attention(query, keys, latents @ w_uv, attn_mask=seen)
    return output, held
