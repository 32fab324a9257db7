"""With a single head the vectors have no dimension for it, and the texts take its place.

Loses: shaw-scores
"""

import math


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    c = key_table.shape[0] // 2
    rows = relative_position.clamp(-c, c) + c
    vec = key_table[rows]
    if q.shape[1] == 1:
        pos = (q.unsqueeze(-2) * vec).sum(-1)
    else:
        pos = (q.unsqueeze(-2) * vec.unsqueeze(-4)).sum(-1)
    return (q @ k.mT + pos) / math.sqrt(q.shape[-1])
