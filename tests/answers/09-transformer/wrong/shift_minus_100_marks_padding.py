"""Padding becomes -100, the number that torch's loss ignores, and a real -100 is taken for padding.

Loses: shift
"""


# %% shift-answer
def teacher_forcing(tokens, real):
    targets = tokens.masked_fill(~real, -100)[:, 1:]
    return tokens[:, :-1], tokens[:, 1:], targets != -100
