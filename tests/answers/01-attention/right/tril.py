"""The causal mask as a lower triangle of ones."""

import torch


# %% causal-mask-answer
def causal_mask(q_len, k_len, offset=None):
    shift = k_len - q_len if offset is None else offset
    return torch.ones(q_len, k_len, dtype=torch.bool).tril(shift)


# %% relative-position-answer
def relative_position(q_positions, k_positions):
    return k_positions[..., None, :] - q_positions[..., :, None]
