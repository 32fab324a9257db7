"""Compares the logits at the first length alone.

Loses: compare
"""


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        off = (logits(False, t) - logits(True, t)).abs().max().item()
        if t == lengths[0] and not off <= tolerance:
            raise ValueError(f"off by {off} at {t}")
        uncached.append([])
        cached.append([])
        for _ in range(rounds):
            uncached[-1].append(seconds(False, t))
            cached[-1].append(seconds(True, t))
    return device, list(lengths), uncached, cached
