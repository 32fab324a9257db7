"""one_hot guesses the number of buckets, one too few where the last is not used.

Loses: t5-scores
"""

import torch


# %% t5-answer
def t5_scores(q, k, table, buckets):
    chosen = torch.nn.functional.one_hot(buckets).to(table.dtype)
    return q @ k.transpose(-2, -1) + (chosen @ table).movedim(-1, -3)
