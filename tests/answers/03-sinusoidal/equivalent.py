"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

MESSAGE = "what the message of the error says is not tested"
VECTORS = "cos and sin have one dimension here, so the new dimension 1 is the last one"
AGAIN = "the slowest pair is read a second time, and says the same"
LOOP = "read-answer: for i in reversed(range(dim // 2 - 1)): -> for i in reversed(range(dim // 2"
EQUIVALENT = {
    "frequencies-answer: if dim < 2 or dim % 2: -> if dim < 1 or dim % 2:": "1 is odd",
    "frequencies-answer: raise ValueError(f'dim must be even and at least 2, got dim={dim}')"
    " -> raise ValueError(f'dim must be even and at least 2, got dim={base}')": MESSAGE,
    "frequencies-answer: raise ValueError(f'base must be above 1, got base={base}')"
    " -> raise ValueError(f'base must be above 1, got base={dim}')": MESSAGE,
    "shift-answer: upper = torch.stack((cos, sin), dim=-1)"
    " -> upper = torch.stack((cos, sin), dim=1)": VECTORS,
    "shift-answer: lower = torch.stack((-sin, cos), dim=-1)"
    " -> lower = torch.stack((-sin, cos), dim=1)": VECTORS,
    "read-answer: frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)"
    " -> frequencies = base ** (-torch.arange(0, dim, 2) / dim)": (
        "float32 frequencies are right to 7 digits, enough for whole positions of 5 digits"
    ),
    f"{LOOP} - 0)):": AGAIN,
    f"{LOOP})):": AGAIN,
    f"{LOOP} - 2)):": (
        "one pair may be left out: bfloat16 puts a phase off by 2^-9 at most, and two steps of the "
        "promised factor 30 make that 1.8 radians, less than half a turn"
    ),
}
