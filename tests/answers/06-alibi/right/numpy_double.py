"""Through NumPy, where no gradient is asked for."""

import numpy as np
import torch


# %% geometric-answer
def geometric_slopes(n_heads):
    return torch.from_numpy(np.geomspace(2.0 ** (-8 / n_heads), 2.0**-8, n_heads))


# %% official-answer
def official_slopes(n_heads):
    power = 2 ** int(np.floor(np.log2(n_heads)))
    exponents = np.concatenate((np.arange(2, 2 * power + 1, 2), np.arange(1, 2 * power, 2)))
    return torch.from_numpy(np.exp2(-4 * exponents[:n_heads] / power))


# %% bias-answer
def alibi_bias(slopes, q_positions, k_positions):
    m, n = q_positions.numpy().astype(np.int64), k_positions.numpy().astype(np.int64)
    distance = np.abs(np.expand_dims(m, -1) - np.expand_dims(n, -2))
    bias = -np.einsum("h,...qk->...hqk", slopes.double().numpy(), distance)
    return torch.from_numpy(bias).to(slopes.dtype)


# %% window-answer
def window(slopes, epsilon, bound):
    solved = (np.log(1 / epsilon) + 2 * bound) / slopes.numpy()
    return torch.from_numpy(np.ceil(solved).astype(np.int64))
