"""Compares which tokens a block has, and not their order.

Loses: prefix
"""

import torch


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    which, reused = None, 0
    for place, tokens in enumerate(held):
        limit = min(len(tokens), len(prompt) - 1)
        common = 0
        while common + block_size <= limit:
            block = slice(common, common + block_size)
            if not torch.equal(tokens[block].sort().values, prompt[block].sort().values):
                break
            common += block_size
        if common > reused:
            which, reused = place, common
    return which, reused
