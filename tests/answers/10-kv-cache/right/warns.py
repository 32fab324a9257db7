"""Right, with a warning and words on stderr, which must cost nothing."""

import statistics
import sys
import warnings


# %% timer-answer
def time_call(work, wait, clock, warmup, repeats):
    warnings.warn("timing is slow", UserWarning, stacklevel=1)
    print("time_call was called", file=sys.stderr)
    times = []
    for _ in range(warmup):
        work()
        wait()
    wait()
    for _ in range(repeats):
        begin = clock()
        work()
        wait()
        times.append(clock() - begin)
    return statistics.median(times)
