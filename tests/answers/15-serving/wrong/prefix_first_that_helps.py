"""Takes the first text with a block in common, not the best one.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    which, reused = None, 0
    for place, tokens in enumerate(held):
        limit = min(len(tokens), len(prompt) - 1)
        same = tokens[:limit] == prompt[:limit]
        common = int(same.long().cumprod(dim=0).sum())
        blocks = common // block_size
        if blocks:
            return place, blocks * block_size
    return which, reused
