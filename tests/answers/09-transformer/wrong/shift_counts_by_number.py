"""Padding is recognized by the number 0.

Loses: shift
"""


# %% shift-answer
def teacher_forcing(tokens, real):
    return tokens[:, :-1], tokens[:, 1:], tokens[:, 1:] != 0
