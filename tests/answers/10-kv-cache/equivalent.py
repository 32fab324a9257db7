"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

WORDS = "the tests ask for a ValueError, and not for its words"
UNSEEN = "wrong, but it cannot be seen: tensors without data do not cross to the tests"
DEVICE = "on a CPU the device is the one that is taken anyway"
CHECKED = "the lists come in equal numbers, as the docstring says"
COUNTS = "counts and sizes are 1 or more, and none reaches 2**24"
NUMBERS = "the arguments are plain numbers, which the key of the store holds in full"
WORDS_OF_A_VOCABULARY = "tokens number the words of a vocabulary, which has fewer than 2**24"

EQUIVALENT = {
    "cache-answer: self.keys = torch.empty(*sizes, head_dim, dtype=dtype, device=device)"
    " -> self.keys = torch.empty(*sizes, head_dim, dtype=dtype)": UNSEEN,
    "cache-answer: self.values = torch.empty(*sizes, value_dim, dtype=dtype, device=device)"
    " -> self.values = torch.empty(*sizes, value_dim, dtype=dtype)": UNSEEN,
    "generate-answer: ended = torch.zeros(prompt.shape[0], dtype=torch.bool, device=prompt.device)"
    " -> ended = torch.zeros(prompt.shape[0], dtype=torch.bool)": DEVICE,
    "read-answer: column = torch.arange(keys.shape[2], device=tokens.device)"
    " -> column = torch.arange(keys.shape[2])": DEVICE,
    "read-answer: row = torch.arange(tokens.shape[1], device=tokens.device)"
    " -> row = torch.arange(tokens.shape[1])": DEVICE,
    "cache-answer: fitting = (*held.shape[:2], k.shape[2], held.shape[3])"
    " -> fitting = (*held.shape[:2], v.shape[2], held.shape[3])": (
        "keys and values must hold equal numbers, whichever of them is asked"
    ),
    "cache-answer: start, end = (self.length, self.length + k.shape[2])"
    " -> start, end = (self.length, self.length + v.shape[2])": (
        "where the numbers differ the call is refused before either is used"
    ),
    "cache-answer: for name, new, held in (('k', k, self.keys), ('v', v, self.values)):"
    " -> for name, new, held in (('v', v, self.values), ('k', k, self.keys)):": (
        "both are checked, in another order"
    ),
    "generate-answer: chosen = logits[:, -1].argmax(dim=-1)"
    " -> chosen = logits[:, -1].argmax(dim=1)": "the second of two dimensions is the last",
    "generate-answer: tokens = torch.cat([tokens, chosen.unsqueeze(-1)], dim=1)"
    " -> tokens = torch.cat([tokens, chosen.unsqueeze(1)], dim=1)": (
        "behind the only dimension is behind the first one"
    ),
    "generate-answer: ended = ended | (chosen == end_token) -> ended = chosen == end_token": (
        "a text that has ended was given the end token one line before"
    ),
    "read-answer: mask = column - len(column) <= (row - len(row)).unsqueeze(-1)"
    " -> mask = column - len(column) <= (row - len(row)).unsqueeze(1)": (
        "behind the only dimension is behind the first one"
    ),
    "crossover-answer: for length, above, below in zip(lengths, uncached, cached, strict=True):"
    " -> for length, above, below in zip(lengths, uncached, cached):": CHECKED,
    "crossover-answer: for length, above, below in zip(lengths, uncached, cached, strict=True):"
    " -> for length, above, below in zip(lengths, uncached, cached, strict=False):": CHECKED,
    "crossover-answer: ratios = [a / b for a, b in zip(above, below, strict=True)]"
    " -> ratios = [a / b for a, b in zip(above, below)]": CHECKED,
    "crossover-answer: ratios = [a / b for a, b in zip(above, below, strict=True)]"
    " -> ratios = [a / b for a, b in zip(above, below, strict=False)]": CHECKED,
}
EQUIVALENT |= {
    "generate-answer: ended = kept(ended, STORE) | (chosen == end_token)": (
        "a text that has ended was given the end token one line before"
    ),
}
RIGHT = {
    r"(bytes|cache)-answer: raise ValueError\(.* -> raise ValueError\(.*": WORDS,
    r"cache-answer: __init__ = cached\(__init__(, last=True)?\)": "an object is made once",
    r"(bytes|crossover)-answer: \w+ = cached\(\w+(, last=True)?\)": NUMBERS,
    r"cache-answer: update = wrong_between\(update, 'k', '(fewer|more) than', 'v'\)": (
        "keys and values of different numbers are refused"
    ),
    r"cache-answer: (k = written\(k\)( \(2\))?|v = written\(v\)( \(2\))?|"
    r"update = writes_if\(update, '[kv]', .*\))": (
        "nothing is promised about what is in k and v after the call"
    ),
    r"read-answer: read = writes_if\(read, 'tokens', .*\)": (
        "nothing is promised about what is in tokens after the call"
    ),
    r"bytes-answer: .*wrong_between\(cache_bytes, 'n_heads', 'fewer than', 'group'\)": (
        "fewer heads than in a group are refused"
    ),
    r"(read|generate)-answer: .*wrong_if\(\w+, '(tokens|prompt)', 'empty'\)": (
        "sizes are 1 or more where a docstring does not say that they may be 0"
    ),
    r"cache-answer: for name, new, held in .*(kept|rounded)\(.*": "only sizes and dtypes are read",
    r"cache-answer: if (not near\(tuple\(|.* not (near|identical)\(new\.dtype, held\.dtype\)).*": (
        "sizes are whole numbers, and of each dtype there is one object"
    ),
    r"cache-answer: self\.\w+ = rounded\(torch\.empty\(.*": "nothing is held there yet",
    r"cache-answer: self\.\w+\[:, :, start:end\] = widened\(.\)": "and narrowed again",
    r"cache-answer: __init__ = wrong_if\(.*, '(negative|zero|above .*)'\)": COUNTS,
    r"cache-answer: (k = (ordered\(k\)|rounded\(k, 'int32'\))|"
    r"update = wrong_if\(update, 'k', 'with .*'\))": (
        "keys of whole numbers are refused, whatever the numbers are"
    ),
    r"cache-answer: truncate = wrong_if\(.*, '(negative|above .*)'\)": "these lengths are refused",
    r"read-answer: read = wrong_if\(read, 'start', 'negative'\)": "positions are 0 or more",
    r"read-answer: read = wrong_if\(read, 'tokens', 'with .*'\)": WORDS_OF_A_VOCABULARY,
    r"read-answer: (tokens = |x = embedding\[)rounded\(.*32'\)\]?": WORDS_OF_A_VOCABULARY,
    r"read-answer: .*len\(rounded\(.*": "only the length is read",
    r"read-answer: ((row|column|mask) = .*|positions = start \+ )rounded\(.*32'\).*": COUNTS,
    r"generate-answer: ended = ended \| near\(chosen, end_token\)": "tokens are whole numbers",
    r"generate-answer: .*rounded\((?!logits(\[:, -1\])?,|model\().*32'\).*": WORDS_OF_A_VOCABULARY,
    r"generate-answer: .*wrong_if\(.*, '(end_token|prompt)', '(with )?(neg|above|some).*": (
        WORDS_OF_A_VOCABULARY
    ),
    r"generate-answer: (chosen|logits) = .*widened\((logits|model\().*": (
        "float64 has every number of a narrower format, in the same order"
    ),
    r"generate-answer: .*, 'max_new_tokens', '(negative|zero|above .*)'\)": COUNTS,
    r"bytes-answer: .*wrong_if\(.*, '(negative|zero)'\)": COUNTS,
    r"bytes-answer: .*wrong_if\(.*, '(?!n_tokens)\w+', 'above .*'\)": (
        "only the number of tokens reaches 2**24"
    ),
    r"timer-answer: .*wrong_if\(\w+, (?!'warmup', 'zero')'\w+', '(negative|zero|above .*)'\)": (
        COUNTS
    ),
    r"compare-answer: .*wrong_if\(.*, 'rounds', '(negative|zero|above .*)'\)": COUNTS,
    r"compare-answer: .*widened\(.*": "more digits than the logits have do no harm",
    r"crossover-answer: elif rounded\(first, '\w+'\) is None:": "only asked whether there is one",
    r"crossover-answer: .* rounded\(0\.25, 'b?float(16|32)'\).*": "every format holds 0.25 exactly",
}
OF_RIGHT_ANSWERS = {
    "one_memory, cache-answer: self.memory = torch.full((max_len, batch_size,"
    " n_kv_heads, head_dim + value_dim), torch.nan, dtype=dtype).to(device) ->"
    " self.memory = torch.full((max_len, batch_size, n_kv_heads, head_dim + value_dim),"
    " torch.nan, dtype=dtype)": UNSEEN,
    "one_memory, cache-answer: raise ValueError(f'{self.length} + {k.shape[2]} is more"
    " than {len(self.memory)}') -> raise ValueError(f'{self.length} + {k.shape[3]} is"
    " more than {len(self.memory)}')": "the tests ask for a ValueError, and not for its words",
    "one_memory, generate-answer: columns = rounded(list(prompt.T), 'int32')": (
        "tokens number the words of a vocabulary, which has fewer than 2**24"
    ),
}
MORE = {
    r"bytes-answer: .*": "a number of bytes is whole",
    r"cache-answer: .*": "numbers are only moved, or it is a copy that is written to",
    r"timer-answer: .*": "seconds are numbers of Python, and nothing there asks for a tensor",
    r"compare-answer: .*rounded\(((un)?cached|seconds\().*": "seconds, likewise",
}
