"""Only float16 and bfloat16 are cast back, so a float32 x with a float64 gain gives float64.

Loses: layer-norm-edges
"""

import torch


# %% layer-norm-answer
def layer_norm(
    x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Give each token mean 0 and variance 1 over its features, then a gain and a bias."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    wide = x.to(dtype)
    mean = wide.mean(dim=-1, keepdim=True)
    centered = wide - mean
    variance = centered.square().mean(dim=-1, keepdim=True)
    normed = centered / torch.sqrt(variance + eps)
    result = normed * gain + bias
    return result.to(x.dtype) if x.dtype in (torch.float16, torch.bfloat16) else result
