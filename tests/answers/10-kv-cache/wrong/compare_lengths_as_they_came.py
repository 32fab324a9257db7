"""Puts the lengths into the record as they came, a range perhaps, and no list.

Loses: compare
"""


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        difference = (logits(False, t) - logits(True, t)).abs()
        if not bool((difference <= tolerance).all()):
            raise ValueError("differ")
        above, below = [], []
        for _ in range(rounds):
            above.append(seconds(False, t))
            below.append(seconds(True, t))
        uncached.append(above)
        cached.append(below)
    return device, lengths, uncached, cached
