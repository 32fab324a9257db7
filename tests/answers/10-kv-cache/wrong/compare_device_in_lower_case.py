"""Makes an identifier of the name of the device.

Loses: compare
"""


# %% compare-answer
def compare(lengths, logits, seconds, rounds, device, tolerance=1e-3):
    uncached, cached = [], []
    for t in lengths:
        off = (logits(False, t) - logits(True, t)).abs().max()
        if not off <= tolerance:
            raise ValueError(f"the logits differ by {off} at t = {t}")
        uncached.append([])
        cached.append([])
        for _ in range(rounds):
            uncached[-1].append(seconds(False, t))
            cached[-1].append(seconds(True, t))
    return device.lower().replace(" ", "-"), list(lengths), uncached, cached
