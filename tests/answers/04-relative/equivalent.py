"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

AHEAD = "a key after the query then has a negative distance, which reaches no boundary: bucket 0"
SEARCH = "the search for a boundary begins at 1 each time, and ends at the same number"
PROMOTED = "an int64 less an int32 number is computed in int64"
FOUR = "the inputs have four dimensions: dimension 2 is the last but one"
WIDTH = "a query, a key and a row of the table have the same width"
EQUIVALENT = {
    "bucket-answer: distance = (-relative_position).clamp(min=0)"
    " -> distance = (-relative_position).clamp(min=-1)": AHEAD,
    "bucket-answer: distance = (-relative_position).clamp(min=0)"
    " -> distance = -relative_position": AHEAD,
    "bucket-answer: start = starts[-1] -> start = starts[-0]": SEARCH,
    "differences-answer: return k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)"
    " -> return k_positions.long().unsqueeze(-2) - q_positions.unsqueeze(-1)": PROMOTED,
    "differences-answer: return k_positions.long().unsqueeze(-2) - q_positions.long().unsqueeze(-1)"
    " -> return k_positions.unsqueeze(-2) - q_positions.long().unsqueeze(-1)": PROMOTED,
    "t5-answer: return q @ k.transpose(-2, -1) + bias"
    " -> return q @ k.transpose(2, -1) + bias": FOUR,
    "shaw-scores-answer: content = q @ k.transpose(-2, -1)"
    " -> content = q @ k.transpose(2, -1)": FOUR,
    "shaw-scores-answer: return (content + position) / math.sqrt(q.shape[-1])"
    " -> return (content + position) / math.sqrt(k.shape[-1])": WIDTH,
    "shaw-scores-answer: return (content + position) / math.sqrt(q.shape[-1])"
    " -> return (content + position) / math.sqrt(key_table.shape[-1])": WIDTH,
}
