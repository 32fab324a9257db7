"""The clipped difference is the index: negative ones count from the end.

Loses: shaw-scores, shaw-scores-precision
"""

import math


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    c = key_table.shape[0] // 2
    rows = relative_position.clamp(-c, c)
    position = (q.unsqueeze(-2) * key_table[rows].unsqueeze(-4)).sum(dim=-1)
    return (q @ k.transpose(-2, -1) + position) / math.sqrt(q.shape[-1])
