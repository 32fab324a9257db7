"""The last column is left out of the targets.

Loses: shift
"""


# %% shift-answer
def teacher_forcing(tokens, real):
    return tokens[:, :-2], tokens[:, 1:-1], real[:, 1:-1]
