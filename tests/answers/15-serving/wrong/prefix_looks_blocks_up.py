"""Looks blocks up by their tokens, although a block may come twice.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    best, saved = None, 0
    blocks = {
        tuple(prompt[i : i + block_size].tolist()): i for i in range(0, len(prompt) - 1, block_size)
    }
    for place, text in enumerate(held):
        r = 0
        for i in range(0, min(len(text), len(prompt) - 1) // block_size * block_size, block_size):
            if blocks.get(tuple(text[i : i + block_size].tolist())) != i:
                break
            r += block_size
        if r > saved:
            best, saved = place, r
    return best, saved
