"""Returns the mean.

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
    return statistics.mean(times)
