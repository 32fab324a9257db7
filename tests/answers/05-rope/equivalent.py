"""Mutants of the solutions that keep all points, and rightly: the mutant, or its kind, and why."""

RIGHT = {
    r".*wrong_if\((?!rope_tables, 'positions')\w+, '\w+', 'empty'\)": (
        "sizes are 1 or more where a docstring does not say that they may be 0"
    ),
    r"(heads|relative)-answer: frequencies = unsqueezed\(frequencies\)": (
        "products broadcast over a dimension in front"
    ),
    r"rope-answer: .*wrong_between\(apply_rope, 'x', 'fewer than', '(cos|sin)'\)": (
        "the tables broadcast to x"
    ),
    r"relative-answer: .*wrong_between\(relative_scores, 'key', 'fewer than', 'offsets'\)": (
        "there are as many offsets as keys, or one for all"
    ),
    # what is computed
    r"(rope|heads)-answer: (a, b|a, b, rest|cos|sin|cos, sin|result|turned) = .*widened\(.*": (
        "a wider dtype on the way, and one rounding at the end"
    ),
    r"(rope|heads)-answer: .*widened\((result|turned)\)\.to\(x\.dtype\).*": (
        "a wider dtype on the way, and one rounding at the end"
    ),
    r"(convert|rope)-answer: if near\(layout, 'interleaved'\):": "no tolerance between strings",
    r"frequencies-answer: rope_frequencies = cached\(rope_frequencies(, last=True)?\)": (
        "two numbers go in: with the same two the result is the same"
    ),
    r"frequencies-answer: .*rounded\((-2 \* pair|pair|torch\.arange\(.*\)), 'float32'\).*": (
        "the number of a pair is whole, and far below 2**24"
    ),
    r"convert-answer: (order = |place = |return heads\[:, rounded\(order, ).*'(float|int)32'\).*": (
        "the number of a row is whole, and far below 2**24"
    ),
    r"heads-answer: r = len\(\w+\(frequencies.*\)\)": "only their number is taken",
    r"(tables|relative)-answer: frequencies = squeezed\(frequencies\)": (
        "a single frequency is multiplied alike with its dimension and without"
    ),
    # gradients
    r"rope-answer: .*(detached|flat_at_zero)\((cos|sin)\).*": (
        "gradients flow to x, and tables are not learned"
    ),
    r"(heads|relative)-answer: .*detached\((angles|cos|sin|frequencies|positions|offsets).*": (
        "gradients flow to queries and keys; angles are not learned"
    ),
    r"(heads|relative)-answer: frequencies = flat_at_zero\(frequencies\)": (
        "gradients flow to queries and keys; angles are not learned"
    ),
    # what never comes in
    r"\w+-answer: frequencies = clamped\(frequencies, -10000.0, 10000.0\)": (
        "frequencies are below 2π"
    ),
    r"(frequencies|interpolate)-answer: return clamped\(.*, -10000.0, 10000.0\)": (
        "frequencies are below 2π"
    ),
    r"rope-answer: (cos|sin) = clamped\(\1, -10000.0, 10000.0\)": "both are from -1 to 1",
    r"tables-answer: return clamped\(.*, -10000.0, 10000.0\)": "cosines and sines: from -1 to 1",
    r".*(wrong|writes)_if\(\w+, 'frequencies', 'all (negative|zeros)'\)": "frequencies are above 0",
    r".*(wrong|writes)_if\(\w+, 'frequencies', 'in (float32|half precision)'\)": (
        "frequencies are in float64"
    ),
    r".*wrong_if\(\w+, '(head_dim|n_heads)', '(negative|zero|above 2\*\*24|above 2\*\*31)'\)": (
        "no model has such heads"
    ),
    r".*wrong_if\(\w+, '(trained_len|wanted_len)', '(negative|zero)'\)": "lengths begin at 1",
    r".*wrong_if\(\w+, 'head_dim', 'one'\)": "it is even",
    r".*(wrong|writes)_if\(\w+, '(x|query|key)', 'size 1 at -1'\)": (
        "a head with a pair has two components"
    ),
    r".*(wrong|writes)_if\(convert_rows, 'rows', 'size 1 at -2'\)": (
        "there is a pair of rows at least"
    ),
    r".*(wrong|writes)_if\((convert_rows, 'rows'|apply_rope, '(cos|sin)'), 'in half precision'\)": (
        "float32 or float64, says the docstring"
    ),
    r".*(wrong|writes)_if\(relative_scores, '(query|key)', 'in (float32|half precision)'\)": (
        "float64, says the docstring"
    ),
}
OF_RIGHT_ANSWERS = {
    "matrices, rope-answer: first, second = (2 * rounded(pair, 'bfloat16'), 2 * pair + 1)": (
        "bfloat16 knows the whole numbers up to 256, and no test has so many pairs"
    ),
    "heads_tables_float32, heads-answer: cos, sin = (angles.cos().to(wide),"
    " detached(angles.sin().to(wide)))": "positions and frequencies need no gradient",
    "heads_tables_float32, heads-answer: wide = torch.float64 if x.dtype == torch.float64 else"
    " torch.float32 -> wide = torch.float64 if frequencies.dtype == torch.float64 else"
    " torch.float32": "the tables may be more precise than they have to be",
    "own_functions_first, relative-answer: cos, sin = detached(rope_tables(offsets,"
    " frequencies, torch.float64))": "offsets and frequencies are given, and need no gradient",
}
MORE = {
    r"convert-answer: .*": "rows are only moved",
    r"heads-answer: rounded\(turned, 'float32'\)\.append\(.*": "that writes to a copy",
}
