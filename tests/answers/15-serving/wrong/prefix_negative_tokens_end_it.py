"""Takes negative tokens for padding.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    best, saved = None, 0
    for place, text in enumerate(held):
        r = 0
        for a, b in zip(text.tolist(), prompt.tolist()[:-1]):
            if a != b or a < 0:
                break
            r += 1
        r = r // block_size * block_size
        if r > saved:
            best, saved = place, r
    return best, saved
