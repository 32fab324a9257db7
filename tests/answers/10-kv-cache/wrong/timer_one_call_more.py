"""Calls once more to have a result.

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
        wait()
        times.append(clock() - begin)
    work()
    return statistics.median(times)
