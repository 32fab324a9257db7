"""Starts the clock while the device is still busy.

Loses: timer
"""

import statistics


# %% timer-answer
def time_call(work, wait, clock, warmup, repeats):
    for _ in range(warmup):
        work()
    times = []
    for _ in range(repeats):
        begin = clock()
        work()
        wait()
        times.append(clock() - begin)
    return statistics.median(times)
