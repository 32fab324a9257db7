"""A row counts if what it reads is real.

Loses: shift
"""


# %% shift-answer
def teacher_forcing(tokens, real):
    return tokens[:, :-1], tokens[:, 1:], real[:, :-1]
