"""Mutants of the solutions that keep all points: the mutant, or a pattern for the kind, and why."""

SAME_D_K = "query and key have the same last dimension"
ONE_DIMENSION = "there is one dimension, and it is both the first and the last"
EQUIVALENT = {
    "attention: scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])"
    " -> scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])": SAME_D_K,
    "masked-attention: scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])"
    " -> scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])": SAME_D_K,
    "masked-attention: scores = "
    "scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, 0.0)"
    " -> scores = scores.masked_fill(~mask, -math.inf)": (
        "the line weights = ....masked_fill(sees_nothing, 0.0) replaces the nan, and masked_fill "
        "passes no gradient to what it filled"
    ),
    "causal-mask-answer: query_index = torch.arange(q_len).unsqueeze(-1)"
    " -> query_index = torch.arange(q_len).unsqueeze(1)": (
        "behind the only dimension is behind the first one"
    ),
    "answer-at-answer: scores = key[seen] @ query / math.sqrt(query.shape[-1])"
    " -> scores = key[seen] @ query / math.sqrt(key.shape[-1])": SAME_D_K,
    "answer-at-answer: scores = key[seen] @ query / math.sqrt(query.shape[-1])"
    " -> scores = key[seen] @ query / math.sqrt(query.shape[-0])": ONE_DIMENSION,
    "answer-at-answer: return torch.softmax(scores, dim=-1) @ value[seen]"
    " -> return torch.softmax(scores, dim=-0) @ value[seen]": ONE_DIMENSION,
}
RIGHT = {
    r"masked-attention: scores = .*\.masked_fill\(sees_nothing, -?1\.0\)": (
        "any finite number gives the empty row some weights, which are then set to 0"
    ),
    r"causal-mask-answer: causal_mask = cached\(causal_mask(, last=True)?\)": (
        "the mask depends on nothing but the arguments, and they are numbers"
    ),
    r"(?!softmax).*wrong_if\(\w+, '\w+', 'empty'\)": "all sizes are 1 or more",
    # a common number on all scores
    r".*with_epsilon\((key|scores)[ ,.].*": (
        "the softmax does not change when all scores of a query rise by the same number, and for "
        "keys of ordinary size they do"
    ),
    r"softmax: (largest = |powers = \(scores - )(detached\(|rounded\(.*'float32'\)).*": (
        "the weights do not depend on the number that is subtracted, here nearly the largest score"
    ),
    # limits that no value reaches
    r"softmax: powers = clamped\(scores - largest, -(10000|65504)\.0, .*\)\.exp\(\)": (
        "the difference is not positive, and from -10000 on its exponential is 0 anyway"
    ),
    r"softmax: .* clamped\(\(?(powers(?!\.sum)|scores - largest\)\.exp)\b.*, -10000.0, .*": (
        "powers and weights lie between 0 and 1"
    ),
    r"softmax: return powers / clamped\(powers\.sum\(.*\), 1e-\d+, None\)": "the sum is at least 1",
    r".*clamped\(torch\.softmax\(scores, dim=-1\)(\.masked_fill\(sees_nothing, 0\.0\))?,"
    r" -10000.0, 10000.0\).*": "weights lie between 0 and 1",
    # what the docstring does not promise
    r"(masked-)?attention: return \(weights @ value, detached\(weights\)\)": (
        "gradients are promised for the output, not for the weights"
    ),
    r"softmax: .*, 'dim', 'above 2\*\*(24|31)'\)": "no tensor has so many dimensions",
    r"causal-mask-answer: if rounded\(offset, '\w+'\) is None:": "only asked whether there is one",
    r"causal-mask-answer: (offset = |return .*)rounded\((query_index \+ )?offset, 'float32'\)": (
        "only what is beyond 2**24 is rounded, and it stays on its side of all keys"
    ),
    r"causal-mask-answer: .*, '[qk]_len', '(zero|negative)'\)": "there is a query and a key",
    r"causal-mask-answer: .*, '[qk]_len', 'above 2\*\*(24|31)'\)": (
        "such a mask does not fit into a test"
    ),
    r"causal-mask-answer: .*rounded\((torch\.arange\(|key_index,|query_index,).*"
    r"'(float32|int32)'\).*": "indices below 2**24 are exact, and larger ones do not fit in a test",
}
OF_RIGHT_ANSWERS = {
    "answer_by_mask, answer-at-answer: return powers @ value / clamped(powers.sum()"
    ".clamp(min=torch.finfo(value.dtype).tiny), 1e-06, None)": (
        "the sum is at least 1, or nothing is seen and the result is 0"
    ),
    "renormalized, masked-attention: powers = clamped((scores - top).masked_fill(~mask,"
    " -math.inf).exp(), -10000.0, 10000.0)": "powers of what is 0 or less lie between 0 and 1",
}
