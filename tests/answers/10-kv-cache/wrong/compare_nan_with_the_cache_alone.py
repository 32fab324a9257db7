"""Looks for nan in the logits with the cache, and not in those without.

Loses: compare
"""


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        without, with_cache = logits(False, t), logits(True, t)
        if with_cache.isnan().any() or (without - with_cache).abs().max() > tolerance:
            raise ValueError(f"the logits differ at t = {t}")
        uncached.append([])
        cached.append([])
        for _ in range(rounds):
            uncached[-1].append(seconds(False, t))
            cached[-1].append(seconds(True, t))
    return device, list(lengths), uncached, cached
