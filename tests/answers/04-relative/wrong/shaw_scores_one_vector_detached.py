"""With c = 0 the only vector is added to all keys, as a constant.

Loses: shaw-scores
"""

import math


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    c = key_table.shape[0] // 2
    if c == 0:
        return q @ (k + key_table.detach()).mT / math.sqrt(q.shape[-1])
    rows = relative_position.clamp(-c, c) + c
    rows = rows if rows.dim() == 3 else rows[None]
    pos = (q.unsqueeze(-2) * key_table[rows].unsqueeze(1)).sum(-1)
    return (q @ k.mT + pos) / math.sqrt(q.shape[-1])
