"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

SIZES = "sizes are 1 or more where a docstring does not say that they may be 0"
ROWS = "there are n + 1 rows for n drafted tokens"
COUNTS = "counts are 0 or more, sizes are 1 or more, and none reaches 2**24"
LENGTH = "only the length is read"
ONE_DIMENSION = "the only dimension, or the last of two, has several names"
TOKENS = "tokens number the words of a vocabulary, which has fewer than 2**24"
WIDE = "more digits than the numbers have do no harm"
WHOLE = "tokens are whole numbers"
FLOAT32 = "the next step is float32 anyway"
TRUTH = "0 and 1 are the same in every format"
PROBABILITY = "probabilities, and the numbers that decide, lie between 0 and 1"

ACCEPTED = "greedy-answer: accepted = right.long().cumprod(dim=-1).sum(dim=-1)"
FOLLOWED = (
    "greedy-answer: return (accepted, chosen.gather(1, accepted.unsqueeze(-1)).squeeze(-1))"
    " -> return (accepted, chosen.gather(1, accepted.unsqueeze({})).squeeze({}))"
)
COMMON = "prefix-answer: common = int(same.long().cumprod(dim=0).sum())"
EQUIVALENT = {
    "memory-answer: fork = wrong_between(fork, 'text', 'as many as', 'other')": (
        "a fork to itself is refused"
    ),
    "prefix-answer: held = unsqueezed(held)": (
        "only a text of one token gets a dimension, and the sum of the comparison is the same"
    ),
    "prefix-answer: prompt = unsqueezed(prompt)": "of a prompt of one token, nothing is compared",
    "memory-answer: for slot, row in enumerate(widened(rows), start=length):": "and narrowed again",
    "memory-answer: if rows.shape[1] != width or not near(rows.dtype, self.memory.dtype):": (
        "of each dtype there is one object"
    ),
    "memory-answer: if rows.shape[1] != width or not identical(rows.dtype, self.memory.dtype):": (
        "of each dtype there is one object"
    ),
    "memory-answer: self.memory = torch.empty(n_blocks, block_size, width, dtype=dtype)"
    " -> self.memory = torch.empty(n_blocks + 1, block_size, width, dtype=dtype)": (
        "the last block is never taken, as the list of users has no entry for it"
    ),
    "memory-answer: for block in self.tables[other]: -> for block in self.tables[text]:": (
        "a fork lists the same blocks"
    ),
    f"{ACCEPTED} -> accepted = right.cumprod(dim=-1).sum(dim=-1)": "torch counts truth as int64",
    f"{ACCEPTED} -> accepted = right.long().cumprod(dim=-1).sum(dim=1)": ONE_DIMENSION,
    f"{ACCEPTED} -> accepted = right.long().cumprod(dim=1).sum(dim=-1)": ONE_DIMENSION,
    "greedy-answer: drafted = torch.arange(drafts.shape[1]) < lengths.unsqueeze(-1)"
    " -> drafted = torch.arange(drafts.shape[1]) < lengths.unsqueeze(1)": ONE_DIMENSION,
    FOLLOWED.format("1", "-1"): ONE_DIMENSION,
    FOLLOWED.format("-1", "1"): ONE_DIMENSION,
    "greedy-answer: lengths = squeezed(lengths)": (
        "the length of one text may come without a dimension"
    ),
    "greedy-answer: right = drafted & near(chosen[:, :-1], drafts)": WHOLE,
    f"{COMMON} -> common = int(same.cumprod(dim=0).sum())": "torch counts truth as int64",
    f"{COMMON} -> common = int(same.long().cumprod(dim=-1).sum())": ONE_DIMENSION,
    "prefix-answer: same = near(tokens[:limit], prompt[:limit])": WHOLE,
    "sampled-answer: for row, token in enumerate(draft.tolist()):"
    " -> for row, token in enumerate(draft):": "a tensor of one whole number is an index too",
    "sampled-answer: if accepted < len(draft): -> if accepted < len(proposal):": (
        "there is one row of the proposal for each drafted token"
    ),
    "sampled-answer: p, q = (target.double(), proposal.double())"
    " -> p, q = (target.double(), proposal)": (
        "torch widens the narrower of two tensors before it computes with both"
    ),
    "sampled-answer: sums = rest.cumsum(dim=0) -> sums = rest.cumsum(dim=-1)": ONE_DIMENSION,
}
RIGHT = {
    r"memory-answer: __init__ = cached\(__init__(, last=True)?\)": "an object is made once",
    r"memory-answer: rows = written\(rows\)( \(2\))?": (
        "where a call is refused, what it wrote into its arguments does not reach the tests"
    ),
    r".*wrong_if\(\w+, '(k|lengths|logits|prompt|target|uniforms)', 'empty'\)": SIZES,
    r"(greedy|sampled)-answer: .*wrong_between\(\w+, '(logits|target)', '(fewer than|as many as)', "
    r"'(drafts|proposal|draft)'\)": ROWS,
    r"(greedy|sampled)-answer: .*widened\(.*": WIDE,
    r"(keys|values)-answer: (codes = .*|return \()widened\(.*": WIDE,
    r"(keys|values)-answer: (groups|wide) = widened\([kv](\[:, :, :full\])?\).*\.float\(\).*": WIDE,
    r"values-answer: v = widened\(v\)": WIDE,
    r"greedy-answer: accepted = rounded\(right\.long\(\)(\.cumprod\(dim=-1\))?, '\w+'\).*": TRUTH,
    r"prefix-answer: common = int\(rounded\(same\.long\(\)(\.cumprod\(dim=0\))?, '\w+'\).*": TRUTH,
    r"greedy-answer: .*rounded\((chosen|logits\.argmax\().*'(float|int)32'\).*": TOKENS,
    r"greedy-answer: .*rounded\(drafts, 'float32'\).*": (
        "float32 holds all tokens below 2**24, and rounds no other whole number to one of them"
    ),
    r"greedy-answer: .*rounded\((accepted|lengths|torch\.arange\(drafts\.shape\[1\]\)|"
    r"right\.long\(\)\.cumprod\(dim=-1\)\.sum\(dim=-1\)).*'(float|int)32'\).*": COUNTS,
    r"greedy-answer: .*wrong_if\(.*, 'lengths', 'with .*'\)": COUNTS,
    r"prefix-answer: common = int\(rounded\(same\..*\.sum\(\), '(float|int)32'\)\)": (
        "a text has fewer than 2**24 tokens"
    ),
    r"prefix-answer: .*wrong_if\(.*, 'block_size', '(negative|zero|above .*)'\)": COUNTS,
    r"(memory|prefix|sampled)-answer: .*len\((kept|rounded|widened)\(.*": LENGTH,
    r"memory-answer: (append = wrong_if\(append, 'rows', 'with .*'\)|rows = ordered\(rows\)|"
    r"rows = rounded\(rows, 'int32'\))": "rows of whole numbers are refused, whatever they are",
    r"memory-answer: __init__ = wrong_if\(.*, '(negative|zero|above .*)'\)": COUNTS,
    r"memory-answer: self\.(tables|lengths): .* = \{\} -> self\.\1: .* = \{\}": (
        "Python does not look at annotations"
    ),
    r"memory-answer: self\.memory\[.*\] = widened\(.*": "and narrowed again",
    r"memory-answer: raise ValueError\(.* -> "
    r"(?!.*\{(rows\.shape\[2\]|text\.(shape|dtype)))raise ValueError\(.*": (
        "the tests ask for a ValueError, and not for its words"
    ),
    r"memory-answer: if not near\(.*": "sizes are whole numbers",
    r"memory-answer: self\.memory = rounded\(torch\.empty\(.*": "nothing is held there yet",
    r"keys-answer: groups = rounded\(k(\[:, :, :full\])?, 'float32'\).*\.float\(\).*": FLOAT32,
    r"sampled-answer: .*rounded\((draft|added|torch\.(cat|searchsorted)).*32'\).*": TOKENS,
    r"sampled-answer: .*wrong_if\(.*, 'draft', 'with .*'\)": TOKENS,
    r"sampled-answer: .*wrong_if\(.*, '(target|proposal|uniforms)', 'all negative'\)": PROBABILITY,
    r"sampled-answer: .*wrong_if\(.*, '(target|proposal)', 'all zeros'\)": "their rows sum to 1",
    r"sampled-answer: .*wrong_if\(.*, 'uniforms', 'all ones'\)": "these numbers are below 1",
    r"sampled-answer: .*(wrong|writes)_if\(.*, 'uniforms', 'in .*'\)": (
        "these numbers come in float64"
    ),
    r"sampled-answer: .*clamped\(.*, -10000\.0, 10000\.0\).*": PROBABILITY,
    r"(keys|values)-answer: .*rounded\((codes|torch\.round\(.*\)), 'bfloat16'\).*": (
        "bfloat16 holds all whole numbers up to 256"
    ),
    r"(keys|values)-answer: .*where\(((with_epsilon|clamped)\(step, [^)]*\) > 0, step, 1|"
    r"step > 0, step, 0|step > -1, step, 1|step >= 0, step, 1)\.0\)\)": (
        "0 divided by 0 is nan, which becomes the code 0"
    ),
    r"(keys|values)-answer: .* -> .*where\(step > 0, step, 2\.0\)\)": "0 divided by 2 is 0 too",
    r"(keys|values)-answer: .*wrong_if\(.*, '(bits|group)', '(negative|zero|above .*)'\)": COUNTS,
    r"values-answer: (wide|v) = rounded\(v, 'float32'\)(\.float\(\))?": FLOAT32,
}
OF_RIGHT_ANSWERS = {
    "blocks_as_tensors, greedy-answer: return (accepted, chosen[torch.arange(len(rounded(chosen, "
    "'int32'))), accepted])": LENGTH,
    "fractions_and_objects, values-answer: codes = rounded(((v - low) / safe).round(), 'float32')"
    ".clamp(0, 2 ** bits - 1)": "float32 holds the whole numbers up to 255",
}
MORE = {
    r"memory-answer: rounded\((self\.\w+|table), 'float32'\)\[.*": "that writes to a copy",
    r"memory-answer: .*rounded\((text|other), .*": "a text's number is its name",
    r"prefix-answer: .*": "tokens are whole numbers, of any size",
}
