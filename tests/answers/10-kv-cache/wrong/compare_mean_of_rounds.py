"""Keeps the mean of the rounds, and not their spread.

Loses: compare
"""


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        off = (logits(False, t) - logits(True, t)).abs().max().item()
        if not off <= tolerance:
            raise ValueError(f"off by {off} at {t}")
        pairs = [(seconds(False, t), seconds(True, t)) for _ in range(rounds)]
        uncached.append(sum(a for a, _ in pairs) / rounds)
        cached.append(sum(b for _, b in pairs) / rounds)
    return device, list(lengths), uncached, cached
