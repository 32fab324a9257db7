"""Mutants of the solutions that keep all points, and rightly: the mutant, or its kind, and why."""

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

SMALL = "the number of a bucket is whole and at most 256"
RIGHT = {
    r".*wrong_if\(\w+, '\w+', 'empty'\)": "all sizes are 1 or more",
    r"terms-answer: w_[qk] = unsqueezed\(w_[qk]\)": "a dimension in front changes no product",
    r"bucket-answer: start = rounded\(starts(, 'bfloat16'\)\[-1\]|\[-1\], 'bfloat16'\))": (
        "it is moved up by less than the gap to the next boundary, and the search ends at the same"
    ),
    r"bucket-answer: .*rounded\(\(*(-?relative_position|distance|first|torch\.(tensor|where))\b.*,"
    r" '(float|int)32'\).*": (
        "int32 holds all differences, and what float32 rounds is far beyond the last boundary"
    ),
    r"bucket-answer: first = rounded\(torch\.where.*, 'b?float16'\)": SMALL,
    r"bucket-answer: return (first \+ )?rounded\((first|\(distance).*, 'b?float16'\).*": SMALL,
    r"bucket-answer: first = torch\.where\(rounded\(relative_position, .*": (
        "rounding keeps the sign"
    ),
    r"t5-answer: .*rounded\(buckets, '\w+'\).*": SMALL,
    r"shaw-\w+-answer: .*rounded\((rows|\(*relative_position\.clamp).*, '(float|int)32'\).*": (
        "there are few rows, and a clipped difference is small"
    ),
    r"shaw-values-answer: weights = clamped\(weights, -10000.0, 10000.0\)": "from 0 to 1",
    # what never comes in
    r".*wrong_if\(\w+, 'weights', 'all negative'\)": "from 0 to 1",
    r".*wrong_if\(\w+, 'buckets', 'with (negatives|some above 2\*\*(24|31))'\)": SMALL,
    r".*wrong_if\(\w+, 'max_distance', '(negative|zero|one|above 2\*\*(24|31))'\)": (
        "it is above E, which is 1 at least, and at most 5000"
    ),
    r".*wrong_if\(\w+, 'num_buckets', '(negative|zero|one|above 2\*\*(24|31))'\)": (
        "there are 2 to 256 buckets"
    ),
    r"bucket-answer: .*'relative_position', 'with some above 2\*\*31'\)": "as far as int32 goes",
    r"terms-answer: .*(wrong|writes)_if\(\w+, '\w+', 'in (float32|half precision)'\)": (
        "float64, says the docstring"
    ),
    r"(t5|shaw-\w+)-answer: .*(wrong|writes)_if\(\w+, '\w+', 'in half precision'\)": (
        "float64 or float32, says the docstring"
    ),
}
OF_RIGHT_ANSWERS = {
    "boundaries, bucket-answer: ahead ="
    " torch.tensor(table)[rounded(relative_position.clamp(0, max_distance), 'int32')] +"
    " size": "clamped distances are small",
    "loops, shaw-values-answer: carried = value[b] + value_table[rounded(own[m].clip(-c,"
    " c) + c, 'int32')]": "clipped distances are small",
    "loops, shaw-values-answer: own = relative_position if rounded(relative_position,"
    " 'float32').dim() == 2 else relative_position[b]": "only the number of dimensions is read",
}
MORE = {
    r"bucket-answer: while .*rounded\((max_distance|start|exact) .*": (
        "exact boundaries are what it is about"
    ),
    r"bucket-answer: rounded\(starts, 'float32'\)\.append\(start\)": "that writes to a copy",
    r"shaw-\w+-answer: .*rounded\(relative_position, .*": (
        "2**63 - 1 is whole, becomes 2**63, and that is negative in int64"
    ),
}
