"""Times all calls together and divides.

Loses: timer
"""


# %% timer-answer
def time_call(work, wait, clock, warmup, repeats):
    for _ in range(warmup):
        work()
    wait()
    begin = clock()
    for _ in range(repeats):
        work()
    wait()
    return (clock() - begin) / repeats
