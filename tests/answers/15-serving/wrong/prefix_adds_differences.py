"""Adds up differences of tokens, which may be too large for int64.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    best, saved = None, 0
    for place, text in enumerate(held):
        n = min(len(text), len(prompt) - 1)
        wrong = (text[:n] - prompt[:n]).abs().cumsum(0)
        r = int((wrong == 0).sum()) // block_size * block_size
        if r > saved:
            best, saved = place, r
    return best, saved
