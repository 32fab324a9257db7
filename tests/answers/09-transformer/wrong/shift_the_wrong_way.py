"""Shifted the wrong way: each row has to say the token before.

Loses: shift
"""


# %% shift-answer
def teacher_forcing(tokens, real):
    return tokens[:, 1:], tokens[:, :-1], real[:, :-1]
