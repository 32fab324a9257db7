"""Writes the result into the caller's tensor.

Loses: rope-interleaved, rope-half
"""


# %% rope-answer
def apply_rope(x, cos, sin, layout):
    pairs = x.shape[-1] // 2
    if layout == "interleaved":
        first, second = slice(0, None, 2), slice(1, None, 2)
    else:
        first, second = slice(0, pairs), slice(pairs, None)
    a, b = x[..., first].clone(), x[..., second].clone()
    x[..., first] = a * cos - b * sin
    x[..., second] = a * sin + b * cos
    return x
