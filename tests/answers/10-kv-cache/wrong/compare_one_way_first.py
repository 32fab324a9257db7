"""Takes all times of one way, and then those of the other.

Loses: compare
"""


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        off = (logits(False, t) - logits(True, t)).abs().max().item()
        if not off <= tolerance:
            raise ValueError(f"off by {off} at {t}")
        uncached.append([seconds(False, t) for _ in range(rounds)])
        cached.append([seconds(True, t) for _ in range(rounds)])
    return device, list(lengths), uncached, cached
