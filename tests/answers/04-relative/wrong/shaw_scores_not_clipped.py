"""No clip: a far key before the query wraps around, as negative indices do.

Loses: shaw-scores, shaw-scores-precision
"""

import math


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    c = key_table.shape[0] // 2
    rows = (relative_position + c) % len(key_table)
    position = (q.unsqueeze(-2) * key_table[rows].unsqueeze(-4)).sum(dim=-1)
    return (q @ k.transpose(-2, -1) + position) / math.sqrt(q.shape[-1])
