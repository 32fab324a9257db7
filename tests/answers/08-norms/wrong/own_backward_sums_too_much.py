"""Its own backward sums over no dimension for a token alone, which torch takes for all of them.

Loses: layer-norm, rms-norm
"""

import torch


# %% layer-norm-answer
class Normalization(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, bias, eps):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        y = wide - wide.mean(-1, keepdim=True)
        root = torch.sqrt(y.square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(y / root, root, gain)
        return (y / root * gain + bias).to(x.dtype)

    @staticmethod
    def backward(ctx, upstream):
        y, root, gain = ctx.saved_tensors
        tokens = tuple(range(upstream.dim() - 1))
        for_gain, for_bias = ((upstream * each).sum(tokens).to(gain.dtype) for each in (y, 1))
        g = upstream * gain
        g = g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True)
        return (g / root).to(upstream.dtype), for_gain, for_bias, None


def layer_norm(x, gain, bias, eps=1e-5):
    return Normalization.apply(x, gain, bias, eps)


# %% rms-norm-answer
class Scaling(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, eps):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        root = torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(wide / root, root, gain)
        return (wide / root * gain).to(x.dtype)

    @staticmethod
    def backward(ctx, upstream):
        y, root, gain = ctx.saved_tensors
        g = upstream * gain
        g = g - y * (g * y).mean(-1, keepdim=True)
        for_gain = (upstream * y).sum(tuple(range(upstream.dim() - 1))).to(gain.dtype)
        return (g / root).to(upstream.dtype), for_gain, None


def rms_norm(x, gain, eps=1e-6):
    return Scaling.apply(x, gain, eps)
