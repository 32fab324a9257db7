"""Differences become int32 before they are clipped: far behind becomes far ahead.

Loses: shaw-scores
"""

import math


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    c = key_table.shape[0] // 2
    rows = (relative_position.int().clamp(-c, c) + c).long().unsqueeze(-3)
    content = q @ k.transpose(-2, -1)
    position = (q @ key_table.T).gather(-1, rows.expand(content.shape))
    return (content + position) / math.sqrt(q.shape[-1])
