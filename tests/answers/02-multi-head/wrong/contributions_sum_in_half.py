"""Adds up the products one component after the other in float16: there, 32 + 1/64 is 32.

Loses: head-contributions-precision
"""


# %% head-contributions-answer
def head_contributions(heads, w_o):
    blocks = w_o.unflatten(0, (heads.shape[1], -1))
    result = 0
    for i in range(heads.shape[-1]):
        result = result + heads[..., i : i + 1] * blocks[:, i : i + 1]
    return result
