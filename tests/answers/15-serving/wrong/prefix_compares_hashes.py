"""Compares hashes of blocks, and -1 and -2 have the same in Python.

Loses: prefix
"""


# %% prefix-answer
def reuse_prefix(held, prompt, block_size):
    def hashes(tokens):
        chain, h = [], 0
        for i in range(0, len(tokens) - block_size + 1, block_size):
            h = hash((h, *tokens[i : i + block_size]))
            chain.append(h)
        return chain

    wanted = hashes(prompt.tolist()[:-1])
    best, saved = None, 0
    for place, text in enumerate(held):
        n = 0
        for a, b in zip(hashes(text.tolist()), wanted):
            if a != b:
                break
            n += block_size
        if n > saved:
            best, saved = place, n
    return best, saved
