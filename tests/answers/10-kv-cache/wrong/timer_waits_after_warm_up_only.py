"""Waits before the first measurement only where there was a warm-up.

Loses: timer
"""


# %% timer-answer
def time_call(work, wait, clock, warmup, repeats):
    for _ in range(warmup):
        work()
        wait()
    times = []
    for _ in range(repeats):
        begin = clock()
        work()
        wait()
        times.append(clock() - begin)
    times.sort()
    return (times[(repeats - 1) // 2] + times[repeats // 2]) / 2
