"""A short cut for one feature, through which no gradient flows to x and gain.

Loses: layer-norm-edges
"""

# %% layer-norm-answer
import torch


def layer_norm(
    x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    if x.shape[-1] == 1:  # a single feature is its own mean
        return bias.to(x.dtype).expand(x.shape).clone()
    y = x.to(torch.promote_types(x.dtype, torch.float32))
    variance, mean = torch.var_mean(y, dim=-1, keepdim=True, correction=0)
    return ((y - mean) * torch.rsqrt(variance + eps) * gain + bias).to(x.dtype)
