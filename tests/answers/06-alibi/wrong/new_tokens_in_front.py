"""The new tokens are stored in front of the old ones.

Loses: read-on, read-on-precision
"""

import torch


# %% read-on-answer
def read_on(attend, query, key, value, past_key, past_value, past_positions):
    batch, _, q_len, _ = query.shape
    before = torch.cat((torch.full((batch, 1), -1), past_positions), dim=-1)
    new = before.amax(dim=-1, keepdim=True) + 1 + torch.arange(q_len)
    keys, values = torch.cat((key, past_key), dim=2), torch.cat((value, past_value), dim=2)
    positions = torch.cat((new, past_positions), dim=-1)
    return attend(query, keys, values, new, positions), keys, values, positions
