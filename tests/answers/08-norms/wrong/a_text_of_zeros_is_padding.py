"""Takes a text of zeros for padding, and passes it on as it is.

Loses: layer-norm, rms-norm, pre-norm, post-norm
"""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    if not x.any():
        return x
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide - wide.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.square().mean(-1, keepdim=True) + eps)
    return (y * gain + bias).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    if not x.any():
        return x
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (y * gain).to(x.dtype)


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    if not x.any():
        return x
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    if not x.any():
        return x
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))
