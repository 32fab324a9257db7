"""Multiplies in float32 and casts the products back.

Loses: head-contributions-precision
"""


# %% head-contributions-answer
def head_contributions(heads, w_o):
    blocks = w_o.float().unflatten(0, (heads.shape[1], -1))
    return (heads.float() @ blocks).to(heads.dtype)
