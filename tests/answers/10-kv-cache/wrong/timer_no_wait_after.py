"""Reads the clock when the call returns.

Loses: timer
"""

import statistics


# %% timer-answer
def time_call(work, wait, clock, warmup, repeats):
    for _ in range(warmup):
        work()
    times = []
    for _ in range(repeats):
        wait()
        begin = clock()
        work()
        times.append(clock() - begin)
    return statistics.median(times)
