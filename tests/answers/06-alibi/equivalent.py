"""Mutants of the solutions that keep all points, and rightly: the mutant, or its kind, and why."""

SIZE = "queries and keys have the same number of components"
NEW = "query, key and value are of the same new tokens here"
TWO = "positions have two dimensions here, so dimension 1 is the last one"
FOUR = "there are four dimensions here, so dimension 2 is the second from the end"
WHOLE = "whole numbers times floating-point numbers get the dtype of the latter"
EMPTY = (
    "the row is set to 0 behind the softmax, and backwards `masked_fill` of `ahead` holds back "
    "whatever comes: a row that sees nothing is ahead in all its entries"
)
LARGEST = "the largest number does not depend on where the -1 stands, nor on how many there are"

SCORES = "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])"
FILL = "scores = scores.masked_fill(ahead, -math.inf)"
DISTANCE = "distance = offset.abs().unsqueeze(-3)"
ODD = "odd = torch.arange(1, {} * power, 2, dtype=torch.float64)[:n_heads - power]"
BEFORE = "before = torch.cat((torch.full((batch, 1), -1), past_positions), dim=-1)"
LIST = "odd = torch.arange(1, 2 * power, 2, dtype=torch.float64)[:n_heads - power]"
LAST = "fewer than P of the P odd numbers are taken, so the last one is never used"
END = "2P + 1 itself is not reached: the same numbers"
EQUIVALENT = {
    f"official-answer: {LIST} -> {LIST.replace('2 * power', '2 * power + 1')}": END,
    f"official-answer: {LIST} -> {LIST.replace('2 * power', '2 * power - 1')}": LAST,
    f"official-answer: {ODD.format(2)} -> {ODD.format(3)}": "the list is cut to n_heads - power",
    f"bias-answer: {DISTANCE}.to(slopes.dtype) -> {DISTANCE}": WHOLE,
    f"attention-answer: {SCORES} -> {SCORES.replace('query.shape', 'key.shape')}": SIZE,
    f"attention-answer: {SCORES} -> {SCORES.replace('-2, -1', '2, -1')}": FOUR,
    f"attention-answer: {FILL}.masked_fill(sees_nothing, 0.0) -> {FILL}": EMPTY,
    f"attention-answer: {FILL}.masked_fill(sees_nothing, 0.0)"
    f" -> {FILL}.masked_fill(sees_nothing, 1.0)": EMPTY,
    f"attention-answer: {FILL}.masked_fill(sees_nothing, 0.0)"
    f" -> {FILL}.masked_fill(sees_nothing, -1.0)": EMPTY,
    "read-on-answer: batch, _, q_len, _ = query.shape -> batch, _, q_len, _ = key.shape": NEW,
    "read-on-answer: batch, _, q_len, _ = query.shape -> batch, _, q_len, _ = value.shape": NEW,
    f"read-on-answer: {BEFORE} -> {BEFORE.replace('dim=-1', 'dim=1')}": TWO,
    f"read-on-answer: {BEFORE} -> {BEFORE.replace('(batch, 1)', '(batch, 2)')}": LARGEST,
    f"read-on-answer: {BEFORE}"
    " -> before = torch.cat((past_positions, torch.full((batch, 1), -1)), dim=-1)": LARGEST,
    "read-on-answer: new = before.amax(dim=-1, keepdim=True) + 1 + torch.arange(q_len)"
    " -> new = before.amax(dim=1, keepdim=True) + 1 + torch.arange(q_len)": TWO,
    "read-on-answer: positions = torch.cat((past_positions, new), dim=-1)"
    " -> positions = torch.cat((past_positions, new), dim=1)": TWO,
}

RIGHT = {
    # what is computed
    r"(geometric|official)-answer: \w+ = cached\(\w+(, last=True)?\)": (
        "the same number, the same slopes"
    ),
    r"geometric-answer: .*rounded\((h|-8 \* h|torch\.arange\(.*\)), 'float32'\).*": (
        "the number of a head is whole, and far below 2**24"
    ),
    r"official-answer: .*rounded\((-[48] \* )?(first|odd|torch\.arange).*, 'float32'\).*": (
        "whole numbers and binary fractions of few digits: float32 holds them"
    ),
    r"attention-answer: ahead = rounded\(offset, 'b?float(16|32)'\) > 0": "rounding keeps the sign",
    r"attention-answer: .*with_epsilon\(scores.*": (
        "the softmax does not change when all scores rise together"
    ),
    r"attention-answer: key = with_epsilon\(key, 1e-09\)": (
        "all scores of a query rise together, and the softmax does not change"
    ),
    r"(bias|attention)-answer: slopes = (un)?squeezed\(slopes\)": "`view` gives the dimension back",
    r"read-on-answer: before = .*rounded\(torch\.full\(.*": "-1 is exact in every dtype",
    r"read-on-answer: new = .*rounded\(torch\.arange\(q_len\), '(float|int)32'\)": (
        "no tensor of new tokens has 2**24 of them"
    ),
    r"window-answer: return rounded\(torch\.ceil\(.*\), 'int32'\)(\.long\(\))?": (
        "the docstring allows windows of up to 50 million tokens, below 2**31"
    ),
    # gradients
    r"attention-answer: .*detached\((slopes|weights\)\)).*": (
        "gradients flow from the output, to query, key and value"
    ),
    # what never comes in, or out
    r"(geometric|official)-answer: return clamped\(.*": "slopes are from 2**-8 to 1",
    r"attention-answer: weights = clamped\(.*, -10000.0, 10000.0\).*": "weights are from 0 to 1",
    r".*wrong_if\(\w+, '(?!past_)\w+', 'empty'\)": "sizes are 1 or more",
    r"window-answer: .*clamped\(slopes, .*": "from 1e-6 to 1000, says the docstring",
    r".*wrong_if\(\w+, 'slopes', 'all (negative|zeros)'\)": "slopes are positive",
    r"attention-answer: slopes = flat_at_zero\(slopes\)": "slopes are positive",
    r".*wrong_if\(\w+, 'n_heads', '(negative|zero|above 2\*\*24|above 2\*\*31)'\)": (
        "no model has such a number of heads"
    ),
    r".*wrong_if\(\w+, 'past_positions', 'with negatives'\)": "0 or more, says the docstring",
    r"window-answer: .*(wrong|writes)_if\(\w+, 'slopes', 'in (float32|half precision)'\)": (
        "float64, says the docstring"
    ),
    r"(attention|read-on)-answer: .*(wrong|writes)_if\(\w+, '\w+', 'in half precision'\)": (
        "float32 or float64, says the docstring"
    ),
}
OF_RIGHT_ANSWERS = {
    "loops, read-on-answer: for i in range(query.shape[2]): -> for i in"
    " range(value.shape[2]):": "there are as many new queries as new values",
}
PLACES = "positions are whole numbers, and far from 0"
MORE = {
    r"bias-answer: (offset = .*|.*rounded\([qk]_positions, .*)": PLACES,
    r"read-on-answer: (before|new|positions|past_positions) = .*": PLACES,
    r"read-on-answer: return .*rounded\((new|positions), .*": PLACES,
}
