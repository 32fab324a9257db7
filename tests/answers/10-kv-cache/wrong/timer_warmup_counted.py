"""Counts the warm-up calls.

Loses: timer
"""

import statistics


# %% timer-answer
def time_call(work, wait, clock, warmup, repeats):
    times = []
    for _ in range(warmup + repeats):
        wait()
        begin = clock()
        work()
        wait()
        times.append(clock() - begin)
    return statistics.median(times)
