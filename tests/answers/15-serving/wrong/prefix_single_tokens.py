"""Does not round down to whole blocks.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    which, reused = None, 0
    for place, tokens in enumerate(held):
        limit = min(len(tokens), len(prompt) - 1)
        same = tokens[:limit] == prompt[:limit]
        common = int(same.long().cumprod(dim=0).sum())
        blocks = common
        if blocks > reused:
            which, reused = place, blocks
    return which, reused
