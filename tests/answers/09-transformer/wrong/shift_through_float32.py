"""Goes through a float32 tensor, which rounds large numbers of tokens.

Loses: shift
"""


# %% shift-answer
def teacher_forcing(tokens, real):
    rows = tokens.float()
    return rows[:, :-1].long(), rows[:, 1:].long(), real[:, 1:]
