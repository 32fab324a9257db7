"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

ZIP = "gradients-answer: for first, second in zip(w_1, leaves, strict=True): -> "

EQUIVALENT = {
    ZIP + "for first, second in zip(w_1, leaves):": "each layer has both of its matrices",
    ZIP + "for first, second in zip(w_1, leaves, strict=False):": (
        "each layer has both of its matrices"
    ),
    "gradients-answer: leaves = [matrix.clone().requires_grad_() for matrix in w_2]"
    " -> leaves = [matrix.requires_grad_() for matrix in w_2]": (
        "iterating gives new tensors, so w_2 itself is not marked"
    ),
    "layer-norm-answer: x = with_epsilon(x, 1e-09)": "the mean takes it out again",
}

RIGHT = {
    r"pre-norm-answer: .* \+ detached\((attention|feed_forward)\(.*": (
        "wrong, but it cannot be seen: the graph of the tests' functions does not cross"
    ),
    r"(layer|rms)-norm-answer: (?!x = |return widened\(\().*widened\(.*": (
        "float32 at least: float64 is allowed"
    ),
    r".*wrong_if\(\w+, '\w+', 'empty'\)": "all sizes are 1 or more",
    r"(layer|rms)-norm-answer: (gain|bias) = squeezed\(\2\)": (
        "a token of one feature has one number, with a dimension of 1 or without"
    ),
    r"gradients-answer: .*rounded\(.*, 'float32'\).*": "differences below 1% do not count",
    r"gradients-answer: (gradients = rounded\(.*|return .*rounded\(.*)'bfloat16'\).*": (
        "the gradients are there, and one rounding to bfloat16 moves them by less than 1%"
    ),
    r"gradients-answer: (w_2|upstream) = with_epsilon\(\1, 1e-09\)": (
        "what is added to all features alike leaves with the mean, forwards and backwards"
    ),
    r"gradients-.*(wrong|writes)_if\(gradient_norms, '\w+', 'in (float32|half precision)'\)": (
        "every argument is float64"
    ),
    r"gradients-answer: .*near\(placement, 'pre'\).*": "strings have no tolerance",
    r"gradients-answer: gradient_norms = detached_if\(.*": (
        "it returns the sizes of gradients, and no gradient of these is promised"
    ),
    r"pre-norm-answer: .*(detached\(norm_.\(|norm_.\(detached\().*": (
        "promised are the two sums; no gradient is promised through the sublayers"
    ),
    r"(pre-norm|post-norm|gradients)-answer: (return writing\(.*, x\)|output = .*written\(x\).*)": (
        "at the end x is the stream, a tensor made here, and no argument"
    ),
}
OF_RIGHT_ANSWERS = {
    "token_by_token, gradients-answer: norms.append(rounded(matrix.grad,"
    " 'bfloat16').pow(2).sum().sqrt())": "differences below 1% do not count",
}
MORE = {
    r"gradients-answer: gradients = .*rounded\(leaves, .*": "a rounded copy has no gradient",
}
