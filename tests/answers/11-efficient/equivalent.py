"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

SIZE = "queries, keys and directions have the same number of components"
FOUR = "there are four dimensions here, so dimension 2 is the second from the end"
TWO = "the projection has two dimensions, so dimension 1 is the last one"
LEVEL = "any number of the row (or of all keys) serves, for spreads of up to 30"
ORDER = "the largest over both dimensions does not depend on their order"
BETWEEN = (
    "less their largest, the logarithms lie between -30 and 0, and the features between 0 and 1"
)

EXPONENT = "return torch.exp(scaled @ projection.transpose(-2, {}) - half_square)"
QUERY = "highest_query = log_query_features.{}(dim=-1, keepdim=True)"
KEY = "highest_key = log_key_features.{}(dim=({}), keepdim=True)"
SCORES = "scores = query @ mixed_key.transpose({}, -1) / math.sqrt({}.shape[-1])"


def turned(cell: str, form: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """The name of a mutant, from the form of its line and what stands in the gaps."""
    return f"{cell}-answer: {form.format(*old)} -> {form.format(*new)}"


TOTAL = "total = phi_k.sum(dim={}).unsqueeze(-1)"
SUMS = "sums = phi_k.transpose({}, -1) @ value"
NEW_S = "new_s = s + key_features.transpose({}, -1) @ value"
NEW_Z = "new_z = z + key_features.sum(dim={})"
PRODUCTS = "products = torch.tril(query_features @ key_features.transpose({}, -1))"
EQUIVALENT = {
    turned("linformer", SCORES, ("-2", "query"), ("2", "query")): FOUR,
    turned("linformer", SCORES, ("-2", "query"), ("-2", "key")): SIZE,
    turned("features", EXPONENT, ("-1",), ("1",)): TWO,
    turned("features", "scaled = x / {}.shape[-1] ** 0.25", ("x",), ("projection",)): SIZE,
    turned("linear", QUERY, ("amax",), ("amin",)): LEVEL,
    turned("linear", QUERY, ("amax",), ("mean",)): LEVEL,
    turned("linear", KEY, ("amax", "-2, -1"), ("amin", "-2, -1")): LEVEL,
    turned("linear", KEY, ("amax", "-2, -1"), ("mean", "-2, -1")): LEVEL,
    turned("linear", KEY, ("amax", "-2, -1"), ("amax", "-1, -2")): ORDER,
    turned("linear", KEY, ("amax", "-2, -1"), ("amax", "2, -1")): FOUR,
    turned("linear", SUMS, ("-2",), ("2",)): FOUR,
    turned("linear", TOTAL, ("-2",), ("2",)): FOUR,
    turned("piece", PRODUCTS, ("-2",), ("2",)): FOUR,
    turned("piece", NEW_S, ("-2",), ("2",)): FOUR,
    turned("piece", NEW_Z, ("-2",), ("2",)): FOUR,
    "linformer-answer: weights = clamped(torch.softmax(scores, dim=-1), -10000.0, 10000.0)": (
        "weights lie between 0 and 1"
    ),
    "linformer-answer: weights = torch.softmax(with_epsilon(scores, 1e-09), dim=-1)": (
        "softmax does not change when all scores rise together"
    ),
    "features-answer: return torch.exp(clamped(scaled @ projection.transpose(-2, -1) - half_square,"
    " -10000.0, 10000.0))": "exp of -10000 is 0, and exp of 10000 infinite",
}
RIGHT = {
    r".*wrong_if\(\w+, '(?!global_)\w+', 'empty'\)": (
        "sizes are 1 or more where a docstring does not say that they may be 0"
    ),
    r"linformer-answer: (\w+_projection) = unsqueezed\(\1\)": (
        "a dimension in front changes no product"
    ),
    r"(features|linear)-answer: .*torch\.exp\(clamped\(.*, -(65504|1000000000)\.0, .*": (
        "exp of -65504 is 0, and exp of 65504 infinite"
    ),
    r"window-answer: .*wrong_if\(sliding_window_mask, 'window', 'negative'\)": "c is 0 or more",
    r"global-answer: global_positions = (ordered|(un)?squeezed|flipped)\(global_positions.*": (
        "isin asks for membership: neither order nor dimensions count"
    ),
    r"features-answer: scaled = .* rounded\(0\.25, 'b?float\d+'\)": (
        "every format holds 0.25 exactly"
    ),
    r"linear-answer: .*(wrong|writes)_if\(linear_attention, .*, 'in (float32|half precision)'\)": (
        "all three tensors are float64"
    ),
    r"linear-answer: phi_. = torch\.exp\(log_\w+ - with_epsilon\(highest_.*": LEVEL,
    r"linear-answer: (log_\w+ = |phi_. = torch\.exp\()with_epsilon\(log_.*": (
        "all the features of a query, or of all keys, rise together, which cancels"
    ),
    r"linear-answer: phi_. = .*clamped\(.* - highest_\w+\)?, -10000\.0, 10000\.0\)\)?": BETWEEN,
    r"linear-answer: total = clamped\(phi_k, -10000\.0, 10000\.0\)\.sum.*": BETWEEN,
    r"piece-answer: .*wrong_if\(read_piece, '(\w+_features|z)', 'all negative'\)": (
        "features are positive, and so are their sums"
    ),
    r"piece-answer: .*wrong_if\(read_piece, '\w+_features', 'all zeros'\)": "features are positive",
    r"piece-answer: (\w+_features) = flat_at_zero\(\1\)": "features are positive",
}
OF_RIGHT_ANSWERS = {
    "differences, linear-answer: queries = torch.softmax("
    "with_epsilon(log_query_features, 1e-09) + largest, dim=-1)": (
        "all the features of a query rise together, which cancels"
    ),
    "differences, linear-answer: queries = clamped("
    "torch.softmax(log_query_features + largest, dim=-1), -10000.0, 10000.0)": BETWEEN,
}
