"""Compares tokens in float32, which holds whole numbers up to 2^24.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    which, reused = None, 0
    for place, tokens in enumerate(held):
        limit = min(len(tokens), len(prompt) - 1)
        same = tokens[:limit].float() == prompt[:limit].float()
        common = int(same.long().cumprod(dim=0).sum())
        blocks = common // block_size
        if blocks * block_size > reused:
            which, reused = place, blocks * block_size
    return which, reused
