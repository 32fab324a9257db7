"""Right, in numpy where no gradient is asked for."""

import numpy as np
import torch


# %% frequencies-answer
def rope_frequencies(head_dim, base):
    return torch.from_numpy(1.0 / base ** (np.arange(0, head_dim, 2) / head_dim))


# %% tables-answer
def rope_tables(positions, frequencies, dtype):
    angles = np.multiply.outer(positions.numpy(), frequencies.numpy())
    return torch.tensor(np.cos(angles)).to(dtype), torch.tensor(np.sin(angles)).to(dtype)


# %% convert-answer
def convert_rows(rows, n_heads, layout):
    cut = (n_heads, -1, 2) if layout == "half" else (n_heads, 2, -1)
    heads = rows.numpy().reshape(*cut, *rows.shape[1:]).swapaxes(1, 2)
    return torch.tensor(heads.reshape(rows.shape))


# %% interpolate-answer
def interpolate(frequencies, trained_len, wanted_len):
    return torch.from_numpy(frequencies.numpy() * min(1.0, trained_len / wanted_len))
