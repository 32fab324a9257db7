"""Computes in float32 whatever comes: float64 loses its last digits.

Loses: layer-norm-precision
"""


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.float()
    y = wide - wide.mean(-1, keepdim=True)
    y = y / (y.square().mean(-1, keepdim=True) + eps).sqrt()
    return (y * gain + bias).to(x.dtype)
