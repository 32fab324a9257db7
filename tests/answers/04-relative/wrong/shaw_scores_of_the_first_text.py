"""All texts get the differences of the first one.

Loses: shaw-scores, shaw-scores-precision
"""

import math


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    if relative_position.dim() == 3:
        relative_position = relative_position[0]

    c = key_table.shape[0] // 2
    rows = (relative_position.clamp(-c, c) + c).unsqueeze(-3)
    content = q @ k.transpose(-2, -1)
    position = (q @ key_table.T).gather(-1, rows.expand(content.shape))
    return (content + position) / math.sqrt(q.shape[-1])
