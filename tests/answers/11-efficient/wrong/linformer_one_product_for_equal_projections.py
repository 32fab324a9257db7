"""Mixes keys and values in one product where E and F are equal: F gets no gradient.

Loses: linformer
"""

# %% linformer-answer
import torch


def linformer_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    key_projection: torch.Tensor,
    value_projection: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    d_k, d_v = key.shape[-1], value.shape[-1]
    if torch.equal(key_projection, value_projection):
        both = key_projection @ torch.cat([key, value], dim=-1)
        mixed_keys, mixed_values = both.split([d_k, d_v], dim=-1)
    else:
        mixed_keys, mixed_values = key_projection @ key, value_projection @ value
    weights = torch.softmax(query @ mixed_keys.mT / d_k**0.5, dim=-1)
    return weights @ mixed_values, weights
