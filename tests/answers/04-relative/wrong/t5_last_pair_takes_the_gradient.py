"""A gradient of its own for the table: of each bucket only one pair counts.

Loses: t5-scores, t5-scores-precision
"""

import torch


# %% t5-answer
def t5_scores(q, k, table, buckets):
    class LookUp(torch.autograd.Function):
        @staticmethod
        def forward(context, table, buckets):
            context.save_for_backward(buckets)
            context.rows = table.shape
            return table[buckets]

        @staticmethod
        def backward(context, gradient):
            (buckets,) = context.saved_tensors
            found = gradient.new_zeros(context.rows)
            found[buckets] = gradient  # in place of index_add_
            return found, None

    return q @ k.transpose(-2, -1) + LookUp.apply(table, buckets).movedim(-1, -3)
