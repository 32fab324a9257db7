"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

SIZE = "queries and keys have the same number of components"
NEW = "query, key and value are of the same new tokens here"
TWO = "positions have two dimensions here, so dimension 1 is the last one"
FOUR = "there are four dimensions here, so dimension 2 is the second from the end"
WHOLE = "whole numbers times floating-point numbers get the dtype of the latter"
ONE_SIDE = "int64 minus another integer dtype is computed in int64"
EMPTY = (
    "the row is set to 0 behind the softmax, and backwards `masked_fill` of `ahead` holds back "
    "whatever comes: a row that sees nothing is ahead in all its entries"
)
LARGEST = "the largest number does not depend on where the -1 stands, nor on how many there are"

SCORES = "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])"
FILL = "scores = scores.masked_fill(ahead, -math.inf)"
OFFSET = "offset = k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)"
DISTANCE = "distance = offset.abs().unsqueeze(-3)"
ODD = "odd = torch.arange(1, {} * power, 2, dtype=torch.float64)[:n_heads - power]"
BEFORE = "before = torch.cat((torch.full((batch, 1), -1), past_positions), dim=-1)"
EQUIVALENT = {
    f"official-answer: {ODD.format(2)} -> {ODD.format(3)}": "the list is cut to n_heads - power",
    f"bias-answer: {OFFSET} -> {OFFSET.replace('k_positions.long()', 'k_positions')}": ONE_SIDE,
    f"bias-answer: {OFFSET} -> {OFFSET.replace('q_positions.long()', 'q_positions')}": ONE_SIDE,
    f"bias-answer: {DISTANCE}.to(slopes.dtype) -> {DISTANCE}": WHOLE,
    f"bias-answer: {DISTANCE}.to(slopes.dtype) -> {DISTANCE}.to(q_positions.dtype)": WHOLE,
    f"bias-answer: {DISTANCE}.to(slopes.dtype) -> {DISTANCE}.to(k_positions.dtype)": WHOLE,
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
