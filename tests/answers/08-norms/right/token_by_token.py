"""Loops over tokens and layers."""

import torch


# %% layer-norm-answer
def layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    tokens = []
    for token in wide.reshape(-1, x.shape[-1]):
        mean = token.sum() / len(token)
        variance = ((token - mean) ** 2).sum() / len(token)
        tokens.append((token - mean) / (variance + eps) ** 0.5 * gain + bias)
    return torch.stack(tokens).reshape(x.shape).to(x.dtype)


# %% rms-norm-answer
def rms_norm(x, gain, eps=1e-6):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    tokens = []
    for token in wide.reshape(-1, x.shape[-1]):
        tokens.append(token * gain / (token @ token / len(token) + eps) ** 0.5)
    return torch.stack(tokens).reshape(x.shape).to(x.dtype)


# %% gradients-answer
def gradient_norms(x, w_1, w_2, upstream, placement):
    norms = []
    for layer in range(len(w_2)):
        matrix, y = w_2[layer].detach().clone().requires_grad_(), x
        for other in range(len(w_2)):
            second = matrix if other == layer else w_2[other]
            if placement == "pre":
                y = y + feed_forward(normalize(y), w_1[other], second)
            else:
                y = normalize(y + feed_forward(y, w_1[other], second))
        if placement == "pre":
            y = normalize(y)
        (upstream * y).sum().backward()
        norms.append(matrix.grad.pow(2).sum().sqrt())
    return torch.stack(norms)
