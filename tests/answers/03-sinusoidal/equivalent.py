"""Mutants of the solutions that keep all points: the mutant, or a pattern for the kind, and why."""

MESSAGE = "the docstring promises the error, not its text"
VECTORS = "cos and sin have one dimension here, so the new dimension 1 is the last one"
AGAIN = "the slowest pair is read a second time, and says the same"
LOOP = "read-answer: for i in reversed(range(dim // 2 - 1)): -> for i in reversed(range(dim // 2"
LEFT_OUT = (
    "one pair may be left out: bfloat16 codes put a phase off by √2·2^-9 = 0.0028 at most, and two "
    "steps of the promised factor 30 make that 2.5 radians, less than half a turn"
)
OFF = (
    "bfloat16 puts a phase off by 2^-7 at most, and its codes by 0.003; a step of the promised "
    "factor 30 makes that 0.3 radians, less than half a turn"
)
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
    f"{LOOP} - 1 + 1)):": AGAIN,
    f"{LOOP} - 2)):": LEFT_OUT,
    f"{LOOP} - 1 - 1)):": LEFT_OUT,
}
RIGHT = {
    r"frequencies-answer: if rounded\(dim, 'bfloat16'\) < 2 or dim % 2:": "small numbers are exact",
    r".*wrong_if\(\w+, '\w+', 'empty'\)": "all sizes are 1 or more",
    # arguments that the docstrings leave out
    r"(encoding|shift|wavelengths)-answer: .*, 'dim', '(negative|one|zero)'\)": (
        "the width is even and at least 2"
    ),
    r"frequencies-answer: .*, 'dim', '(negative|one|zero)'\)": "such a width raises an error",
    r".*, 'dim', 'above 2\*\*(24|31)'\)": "no code is so wide",
    r"rotation-answer: .*'in half precision'\)": "angles are float32 or float64",
    r"rows-answer: .*'in (float32|half precision)'\)": "rows are float64",
    r"read-answer: .*'in float32'\)": "codes are float64 or bfloat16",
    r"(read|rows)-answer: .*, 'size 1 at -1'\)": "the width is even",
    r"read-answer: .*wrong_if\(read_position, 'codes', 'all (zeros|ones)'\)": (
        "the squares of a sine and its cosine make 1: no code is all 0 or all 1"
    ),
    # the same number
    r".*torch\.arange\(0, dim - 1, 2, .*": "the width is even, so the last pair still counts",
    r".*rounded\(-?torch\.arange\(0, dim, 2, dtype=torch\.float64\), 'float32'\) / dim.*": (
        "float32 knows the whole numbers below 2**24"
    ),
    r"encoding-answer: .*widened\(positions(\.unsqueeze\(-1\))?\).*": (
        "the product with float64 frequencies is float64 anyway"
    ),
    r"(frequencies|wavelengths|shift)-answer: \w+ = cached\(\w+(, last=True)?\)": (
        "the result depends on nothing but the arguments, and they are numbers"
    ),
    # limits that no value reaches
    r"(encoding|rotation|shift)-answer: return clamped\(.*, -10000\.0, 10000\.0\)": (
        "sines and cosines lie between -1 and 1"
    ),
    r"frequencies-answer: return clamped\(.*, -10000\.0, 10000\.0\)": "frequencies are at most 1",
    r"wavelengths-answer: return clamped\(.*, 1e-09, None\)": "wavelengths are at least 2π",
    r"read-answer: codes = clamped\(codes, -10000\.0, 10000\.0\)": "codes lie between -1 and 1",
    r"shift-answer: return squeezed\(.*": "the matrix has two rows and two columns at least",
    # reading rounds to whole positions of five digits, and allows for codes in bfloat16
    r"read-answer: codes = (rounded\(codes(\.double\(\))?, .*|with_epsilon\(codes, 1e-09\))": (
        "codes may come rounded to bfloat16, so they may be rounded once more"
    ),
    r"read-answer: codes = widened\(codes\)(\.double\(\))?": "codes become float64 anyway",
    r"read-answer: phases = .*rounded\(.*": OFF,
    r"read-answer: .*rounded\(phases(\[\.\.\., (i|-1)\])?, .*": OFF,
    r"read-answer: .*rounded\(.*, 'float32'\).*": "float32 has 7 digits",
    r"read-answer: return rounded\(position\.round\(\)\.long\(\), 'int32'\)": "positions are small",
    r"read-answer: position = .* / (with_epsilon|clamped)\(frequencies\[(-1|i)\], .*": (
        "the first estimate may be rough, the last one is divided by 1, and in between the next "
        "phase is off by at most 50,000·30·10^-6 = 1.5 radians"
    ),
    r"read-answer: position = (?=.*\[-1\]).*'bfloat16'\).*": (
        "the first estimate may be as rough as codes in bfloat16 make it"
    ),
}
OF_RIGHT_ANSWERS: dict[str, str] = {}
MORE = {
    r"frequencies-answer: if not rounded\(base, .*": "a base just above 1 would be refused",
}
