"""Finds the largest position in int32: beyond 2^31 it is another one.

Loses: read-on
"""

import torch


# %% read-on-answer
def read_on(attend, query, key, value, past_key, past_value, past_positions):
    batch, _, q_len, _ = query.shape
    before = torch.cat((torch.full((batch, 1), -1), past_positions), dim=-1)
    last = before.int().amax(dim=-1, keepdim=True).long()
    new = last + 1 + torch.arange(q_len)
    keys, values = torch.cat((past_key, key), dim=2), torch.cat((past_value, value), dim=2)
    positions = torch.cat((past_positions, new), dim=-1)
    return attend(query, keys, values, new, positions), keys, values, positions
