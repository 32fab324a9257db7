"""Looks for what all the texts have in common with the prompt.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    commons = []
    for tokens in held:
        limit = min(len(tokens), len(prompt) - 1)
        commons.append(int((tokens[:limit] == prompt[:limit]).long().cumprod(dim=0).sum()))
    reused = min(commons, default=0) // block_size * block_size
    return (0 if reused else None), reused
