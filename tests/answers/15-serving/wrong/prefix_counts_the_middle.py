"""Counts all equal tokens, also those after the first difference.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    which, reused = None, 0
    for place, tokens in enumerate(held):
        limit = min(len(tokens), len(prompt) - 1)
        same = tokens[:limit] == prompt[:limit]
        common = int(same.long().sum())
        blocks = common // block_size
        if blocks * block_size > reused:
            which, reused = place, blocks * block_size
    return which, reused
