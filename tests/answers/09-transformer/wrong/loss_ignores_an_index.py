"""By torch's own with `ignore_index`: nan where nothing counts comes back in the gradient.

Loses: loss-edges
"""

import torch


# %% loss-answer
def cross_entropy(logits, targets, counts):
    wanted = targets.masked_fill(~counts, -100)
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), wanted)
