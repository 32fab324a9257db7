"""√d_k is a float32 tensor.

Loses: shaw-scores-precision
"""

import torch


# %% shaw-scores-answer
def shaw_scores(q, k, key_table, relative_position):
    c = key_table.shape[0] // 2
    rows = (relative_position.clamp(-c, c) + c).unsqueeze(-3)
    content = q @ k.transpose(-2, -1)
    position = (q @ key_table.T).gather(-1, rows.expand(content.shape))
    return (content + position) / torch.sqrt(torch.tensor(q.shape[-1]))
