"""The next position is the number of stored tokens: wrong as soon as one was dropped.

Loses: read-on
"""

import torch


# %% read-on-answer
def read_on(attend, query, key, value, past_key, past_value, past_positions):
    batch, _, q_len, _ = query.shape
    new = past_positions.shape[-1] + torch.arange(q_len).expand(batch, q_len)
    keys, values = torch.cat((past_key, key), dim=2), torch.cat((past_value, value), dim=2)
    positions = torch.cat((past_positions, new), dim=-1)
    return attend(query, keys, values, new, positions), keys, values, positions
