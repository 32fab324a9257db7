"""Copies the output into a new tensor of the default dtype, float32, and casts it back.

Loses: read-on-precision
"""

import torch


# %% read-on-answer
def read_on(attend, query, key, value, past_key, past_value, past_positions):
    batch, n_heads, q_len, _ = query.shape
    before = torch.cat((torch.full((batch, 1), -1), past_positions), dim=-1)
    new = before.amax(dim=-1, keepdim=True) + 1 + torch.arange(q_len)
    keys, values = torch.cat((past_key, key), dim=2), torch.cat((past_value, value), dim=2)
    positions = torch.cat((past_positions, new), dim=-1)
    output = torch.zeros(batch, n_heads, q_len, value.shape[-1])
    output[:] = attend(query, keys, values, new, positions)
    return output.to(query.dtype), keys, values, positions
