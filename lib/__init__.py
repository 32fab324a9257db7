"""The reference implementation behind the course "Attention, Position, Cache".

One idea per module, and each module is the text that a chapter quotes:

- :mod:`lib.attention`: scaled dot-product attention and its masks (chapter 01).
- :mod:`lib.figures`: how the figures look; :mod:`lib.interactive`: the figures to play with, made
  of the marks in :mod:`lib.marks`.

Conventions that hold everywhere:

- Masks are boolean, and ``True`` means "may attend".
- ``m`` is the position that asks (the query), ``n`` the position that is asked (the key).
- Shapes are written ``(..., q_len, head_dim)``: the dots stand for any leading dimensions,
  usually ``(batch, heads)``.
- A caller's mistake raises :class:`ValueError` and names both values.
"""
