"""The heads are detached before they are joined.

Loses: merge-heads
"""

import torch


# %% merge-heads-answer
def merge_heads(x):
    return torch.cat(x.detach().unbind(-3), dim=-1)
