"""The reference implementation behind the course "Attention, Position, Cache".

One idea per module, and each module is the text that a chapter quotes:

- :mod:`lib.attention`: scaled dot-product attention and its masks (chapter 01), several heads
  (02), grouped heads (10).
- :mod:`lib.position`: the three places where position enters; one module per scheme:
  :mod:`lib.learned` and :mod:`lib.sinusoidal` (03), :mod:`lib.shaw`, :mod:`lib.transformer_xl` and
  :mod:`lib.t5` (04), :mod:`lib.rope` (05), :mod:`lib.alibi` and :mod:`lib.kerple` (06).
  :mod:`lib.relative` holds the four terms of a score, DeBERTa and TUPE (04), :mod:`lib.schemes`
  every scheme by name.
- :mod:`lib.masks`: which keys a query may attend to (01, 11).
- :mod:`lib.norms`: layer and root-mean-square normalization (08).
- :mod:`lib.block`, :mod:`lib.stack`, :mod:`lib.transformer`: one layer, what stacks share, and the
  encoder, decoder and models made of them (08, 09).
- :mod:`lib.kv_cache`, :mod:`lib.generation`, :mod:`lib.sampling`: the KV cache, decoding with it,
  and how the next token is drawn (10).
- :mod:`lib.caches`: caches in blocks, quantized, and of a window; :mod:`lib.speculation`: several
  guessed tokens checked in one pass; :mod:`lib.serving`: many texts through one model (15).
- :mod:`lib.efficient`: sliding windows, Linformer, Performer (11).
- :mod:`lib.tiled`, :mod:`lib.latent`: exact attention in tiles, and the latent attention whose
  cache holds one vector for all heads (14); the other options of current models are in
  :mod:`lib.attention`.
- :mod:`lib.pretrained`: trained weights of the BERT family in the course's encoder (12).
- :mod:`lib.smollm`: a published language model in the course's own; :mod:`lib.gguf` reads its file,
  and :mod:`lib.bpe` is its tokenizer (13).
- :mod:`lib.training`, :mod:`lib.data`, :mod:`lib.timing`: loss and loop, data without a download,
  a clock that waits for the device; :mod:`lib.crossover`: from which length on a cache pays.
- :mod:`lib.extrapolation`, :mod:`lib.warmup`: training grids (07, 08);
  :mod:`lib.results` reads what they gave.
- :mod:`lib.figures`: how the figures look; :mod:`lib.interactive`: the figures to play with, made
  of the marks in :mod:`lib.svg`; :mod:`lib.questions`: questions that a page answers.

Conventions that hold everywhere:

- Masks are boolean, and ``True`` means "may attend".
- ``m`` is the query's position, ``n`` the key's.
- Shapes are written ``(..., q_len, head_dim)``: the dots stand for any leading dimensions,
  usually ``(batch, heads)``.
- A caller's mistake raises :class:`ValueError` and names both values.
"""
