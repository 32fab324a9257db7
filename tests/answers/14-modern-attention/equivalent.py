"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

SIZE = "queries and keys have the same number of components, and so have vectors and gains"
FOUR = "there are four dimensions here, so dimension 2 is the second from the end"
EVEN = "d_k is even, so one less than it is odd and the last step of two ends at the same place"
UNSEEN = "the sums of a query that has seen no key are 0, and for all other queries z >= 1"
DTYPE = "the gain has the dtype of x"
INFINITE = "-inf stays -inf in a wider format, and when a small number is added"
EXPONENT = "exp of -10000 is 0, and no exponent is above 0"
WEIGHT = "no exponent is above 0, so each term lies between 0 and 1"
ALIKE = "softmax does not change when all scores of a row rise together"

LEVEL = "level = new_largest.masked_fill(new_largest == -math.inf, {})"
SCORES = "scores = query @ key.transpose({}, -1) / math.sqrt({}.shape[-1])"
EXPONENTS = "exponents = torch.arange(0, {}, 2, dtype=torch.float64) / {}"


def turned(cell: str, form: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """The name of a mutant, from the form of its line and what fills the gaps."""
    return f"{cell}-answer: {form.format(*old)} -> {form.format(*new)}"


X = "x.shape[-1]"
EQUIVALENT = {
    turned("block", LEVEL, ("0.0",), ("-1.0",)): UNSEEN,
    turned("block", LEVEL, ("0.0",), ("1.0",)): UNSEEN,
    "block-answer: total = clamped(total, 1e-09, None)": UNSEEN,
    turned("sink", SCORES, ("-2", "query"), ("-2", "key")): SIZE,
    turned("sink", SCORES, ("-2", "query"), ("2", "query")): FOUR,
    turned("norm", EXPONENTS, (X, X), ("gain.shape[-1]", X)): SIZE,
    turned("norm", EXPONENTS, (X, X), (X, "gain.shape[-1]")): SIZE,
    turned("norm", EXPONENTS, (X, X), (f"{X} - 1", X)): EVEN,
    "norm-answer: gain = squeezed(gain)": "an even d_k is at least 2",
    turned("norm", "return pairs.flatten(-2).to({}.dtype)", ("x",), ("gain",)): DTYPE,
    "norm-answer: wide = x.to(torch.promote_types(x.dtype, torch.float32)) -> "
    "wide = x.to(torch.promote_types(gain.dtype, torch.float32))": DTYPE,
}
RIGHT = {
    r".*wrong_if\(\w+, '(?!cache')\w+', 'empty'\)": (
        "sizes are 1 or more where a docstring does not say that they may be 0"
    ),
    r"sink-answer: sinks = (un)?squeezed\(sinks\)": "`view` gives it the right dimensions",
    r"(norm-answer: gain|absorbed-answer: w_u[kv]|latent-answer: w_uv) = unsqueezed\(\w+\)": (
        "a dimension in front changes no product"
    ),
    r"(absorbed|latent)-answer: .*(wrong|writes)_if\(.*, '(query|entries|cache)', "
    r"'size 1 at -1'\)": "it has two parts, each of 1 number or more",
    r"norm-answer: .*(wrong|writes)_if\(normalize_and_rotate, '(x|gain)', 'size 1 at -1'\)": (
        "d_k is even"
    ),
    r"block-answer: .*wrong_if\(add_block, 'total', 'all negative'\)": "sums of weights are not",
    r"block-answer: level = new_largest\.masked_fill\("
    r"(widened|with_epsilon)\(new_largest(, 1e-09)?\) == -math\.inf.*": INFINITE,
    r"block-answer: \w+ = torch\.exp\(clamped\(\w+ - level(\.unsqueeze\(-1\))?, "
    r"-(10000|65504)\.0, .*\)\)": EXPONENT,
    r"block-answer: .*clamped\((terms|torch\.exp\(.*\)), -10000\.0, 10000\.0\).*": WEIGHT,
    r"\w+-answer: weights = .*clamped\(torch\.softmax\(.*, -10000\.0, 10000\.0\).*": (
        "weights lie between 0 and 1"
    ),
    r"\w+-answer: weights = torch\.softmax\(with_epsilon\(.*": ALIKE,
    r"norm-answer: (?!x = |return widened\(pairs\.flatten\(-2\)\.to).*widened\(.*": (
        "the docstring allows every format from float32 up"
    ),
    r"norm-answer: cos, sin = .* -> cos, sin = \(.*angles\.(cos|sin)\(\)[,)].*": (
        "the docstring allows every format from float32 up"
    ),
    r"norm-answer: exponents = rounded\(torch\.arange\(.*\), 'float32'\) / .*": (
        "float32 holds whole numbers up to 2^24 exactly"
    ),
}
THETA = "theta = base ** (-(torch.arange(0, x.shape[-1]{}, 2).double() / x.shape[-1]))"
OF_RIGHT_ANSWERS = {
    f"fused_kernels, {turned('norm', THETA, ('',), (' - 1',))}": EVEN,
    "loops, sink-answer: for h in range(query.shape[1]): -> for h in range(key.shape[1]):": (
        "queries and keys have the same heads"
    ),
    "fused_kernels, sink-answer: both = torch.cat((value, rounded(torch.eye(k_len, "
    "dtype=value.dtype), 'bfloat16').expand(batch, n_heads, -1, -1)), -1)": (
        "every format holds 0 and 1 exactly"
    ),
    "float64_throughout, sink-answer: q, k, v, z = (widened(x).double() for x in (query, key, "
    "value, sinks))": "float64 is wider still",
    "float64_throughout, latent-answer: s = sent[:, i:i + 1] @ e[:, :n].mT / query.shape[-1] ** "
    "rounded(0.5, 'float32')": "every format holds 0.5 exactly",
    "float64_throughout, norm-answer: a, b = (w[..., 0::2], widened(w)[..., 1::2])": (
        "the docstring allows every format from float32 up"
    ),
}
MORE = {
    r"latent-answer: ((cache|entries|held) = |return ).*"
    r"rounded\((cache|entries|held|torch\.cat\().*": "the tests compare the cache exactly",
}
