"""c is added before clipping, which goes round at the end of int64.

Loses: shaw-scores
"""

import math


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    c = key_table.shape[0] // 2
    rows = (relative_position + c).clamp(0, 2 * c)
    vectors = key_table[rows]
    if rows.dim() == 3:
        vectors = vectors.unsqueeze(1)
    position = (q.unsqueeze(-2) * vectors).sum(-1)
    return (q @ k.transpose(-2, -1) + position) / math.sqrt(q.shape[-1])
