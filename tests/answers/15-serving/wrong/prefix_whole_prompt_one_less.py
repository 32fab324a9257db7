"""Takes one token off only where the whole prompt is in memory, and after rounding to blocks.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    which, reused = None, 0
    for place, tokens in enumerate(held):
        limit = min(len(tokens), len(prompt))
        same = tokens[:limit] == prompt[:limit]
        common = int(same.long().cumprod(dim=0).sum())
        blocks = common // block_size
        saved = min(blocks * block_size, len(prompt) - 1)
        if saved > reused:
            which, reused = place, saved
    return which, reused
