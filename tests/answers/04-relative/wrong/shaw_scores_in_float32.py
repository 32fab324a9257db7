"""Computes in float32 and returns the dtype of the queries.

Loses: shaw-scores-precision
"""

import math


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    dtype = q.dtype
    q, k, key_table = q.float(), k.float(), key_table.float()
    c = key_table.shape[0] // 2
    rows = (relative_position.clamp(-c, c) + c).unsqueeze(-3)
    content = q @ k.transpose(-2, -1)
    position = (q @ key_table.T).gather(-1, rows.expand(content.shape))
    return ((content + position) / math.sqrt(q.shape[-1])).to(dtype)
