"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

WORDS = "the tests ask for a ValueError, and not for its words"
DEVICE = "on a CPU the device is the one that is taken anyway"
CHECKED = "the lists come in equal numbers, as the docstring says"

SIZES = ("n_tokens", "batch_size", "n_layers", "n_heads", "group", "d_k", "d_v", "bits")
NOT_DIVIDED = "bytes-answer: raise ValueError(f'{n_heads} heads, groups of {group}')"
NO_ROOM = "cache-answer: raise ValueError(f'{end} tokens, room for {self.keys.shape[2]}')"

EQUIVALENT = {
    f"{NOT_DIVIDED} -> raise ValueError(f'{{{heads}}} heads, groups of {{{group}}}')": WORDS
    for heads, group in [
        *((name, "group") for name in SIZES),
        *(("n_heads", name) for name in SIZES),
    ]
    if (heads, group) != ("n_heads", "group")
}
EQUIVALENT |= {
    f"{NO_ROOM} -> raise ValueError(f'{{end}} tokens, room for {{self.keys.shape[{dim}]}}')": WORDS
    for dim in (1, 3)
}
EQUIVALENT |= {
    "cache-answer: self.keys = torch.empty(*sizes, head_dim, dtype=dtype, device=device)"
    " -> self.keys = torch.empty(*sizes, head_dim, dtype=dtype)": DEVICE,
    "cache-answer: self.values = torch.empty(*sizes, value_dim, dtype=dtype, device=device)"
    " -> self.values = torch.empty(*sizes, value_dim, dtype=dtype)": DEVICE,
    "generate-answer: ended = torch.zeros(prompt.shape[0], dtype=torch.bool, device=prompt.device)"
    " -> ended = torch.zeros(prompt.shape[0], dtype=torch.bool)": DEVICE,
    "read-answer: column = torch.arange(keys.shape[2], device=tokens.device)"
    " -> column = torch.arange(keys.shape[2])": DEVICE,
    "read-answer: row = torch.arange(tokens.shape[1], device=tokens.device)"
    " -> row = torch.arange(tokens.shape[1])": DEVICE,
    "cache-answer: fitting = (*held.shape[:2], k.shape[2], held.shape[3])"
    " -> fitting = (*held.shape[:2], v.shape[2], held.shape[3])": (
        "keys and values must hold equal numbers, whichever of them is asked"
    ),
    "cache-answer: start, end = (self.length, self.length + k.shape[2])"
    " -> start, end = (self.length, self.length + v.shape[2])": (
        "where the numbers differ the call is refused before either is used"
    ),
    "cache-answer: for name, new, held in (('k', k, self.keys), ('v', v, self.values)):"
    " -> for name, new, held in (('v', v, self.values), ('k', k, self.keys)):": (
        "both are checked, in another order"
    ),
    "generate-answer: chosen = logits[:, -1].argmax(dim=-1)"
    " -> chosen = logits[:, -1].argmax(dim=1)": "the second of two dimensions is the last",
    "generate-answer: tokens = torch.cat([tokens, chosen.unsqueeze(-1)], dim=1)"
    " -> tokens = torch.cat([tokens, chosen.unsqueeze(1)], dim=1)": (
        "behind the only dimension is behind the first one"
    ),
    "generate-answer: ended = ended | (chosen == end_token) -> ended = chosen == end_token": (
        "a text that has ended was given the end token one line before"
    ),
    "read-answer: mask = column - len(column) <= (row - len(row)).unsqueeze(-1)"
    " -> mask = column - len(column) <= (row - len(row)).unsqueeze(1)": (
        "behind the only dimension is behind the first one"
    ),
    "crossover-answer: for length, above, below in zip(lengths, uncached, cached, strict=True):"
    " -> for length, above, below in zip(lengths, uncached, cached):": CHECKED,
    "crossover-answer: for length, above, below in zip(lengths, uncached, cached, strict=True):"
    " -> for length, above, below in zip(lengths, uncached, cached, strict=False):": CHECKED,
    "crossover-answer: ratios = [a / b for a, b in zip(above, below, strict=True)]"
    " -> ratios = [a / b for a, b in zip(above, below)]": CHECKED,
    "crossover-answer: ratios = [a / b for a, b in zip(above, below, strict=True)]"
    " -> ratios = [a / b for a, b in zip(above, below, strict=False)]": CHECKED,
}
