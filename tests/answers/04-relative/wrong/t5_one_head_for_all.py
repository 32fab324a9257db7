"""All heads get the bias of head 0.

Loses: t5-scores, t5-scores-precision
"""


# %% t5-answer
def t5_scores(q, k, table, buckets):
    return q @ k.transpose(-2, -1) + table[buckets][..., 0].unsqueeze(-3)
