"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

SIZE = "queries, keys and directions have the same number of components"
FOUR = "there are four dimensions here, so dimension 2 is the second from the end"
TWO = "the projection has two dimensions, so dimension 1 is the last one"
LEVEL = "any number of the row (or of all keys) serves, for spreads of up to 30"
ORDER = "the largest over both dimensions does not depend on their order"

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
}
