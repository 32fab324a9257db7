"""A gradient of its own for the table, summed in float32.

Loses: t5-scores-precision
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
            total = torch.zeros(context.rows)
            total.index_add_(0, buckets.flatten(), gradient.flatten(0, -2).float())
            return total.to(gradient.dtype), None

    return q @ k.transpose(-2, -1) + LookUp.apply(table, buckets).movedim(-1, -3)
