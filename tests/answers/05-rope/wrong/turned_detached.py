"""Writes into a copy without history: right results, no gradient.

Loses: rope-interleaved, rope-half
"""


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    pairs = x.shape[-1] // 2
    if layout == "interleaved":
        first, second = slice(0, None, 2), slice(1, None, 2)
    else:
        first, second = slice(0, pairs), slice(pairs, None)
    result = x.detach().clone()
    a, b = x[..., first], x[..., second]
    result[..., first] = (a * cos - b * sin).detach()
    result[..., second] = (a * sin + b * cos).detach()
    return result
