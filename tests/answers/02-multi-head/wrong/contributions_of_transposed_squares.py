"""Where a block of w_o is square it is taken for a weight of nn.Linear, and transposed.

Loses: head-contributions
"""


# %% head-contributions-answer
def head_contributions(heads, w_o):
    blocks = w_o.unflatten(0, (heads.shape[1], -1))
    if blocks.shape[-1] == heads.shape[-1]:
        blocks = blocks.mT
    return heads @ blocks
