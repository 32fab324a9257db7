"""The tokens are rolled round: the last row has to say start.

Loses: shift
"""


# %% shift-answer
def teacher_forcing(tokens, real):
    return tokens, tokens.roll(-1, dims=1), real.roll(-1, dims=1)
