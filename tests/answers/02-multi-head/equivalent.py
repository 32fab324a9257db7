"""Mutants of the solutions that keep all points: the mutant, or a pattern for the kind, and why."""

EQUIVALENT = {
    "attention-mask-answer: stands_at = torch.arange(q_len).unsqueeze(-1) + k_len - q_len"
    " -> stands_at = torch.arange(q_len).unsqueeze(1) + k_len - q_len": (
        "behind the only dimension is behind the first one"
    ),
    "attention-mask-answer: return first_for_all(mask, 1)": "dimension 1 has one entry",
    "attention-mask-answer: return transposed_if_square(mask, 0, 1)": (
        "dimension 1 has one entry, so dimension 0 has one too where they are equal"
    ),
    "there-and-back-answer: return writing(result[:, torch.argsort(order)], mask)": (
        "what is written into is the moved mask, a copy"
    ),
    "there-and-back-answer: if kept(mask, STORE) is not None:": (
        "it is only asked whether there is a mask"
    ),
    "multi-head-answer: return (heads.transpose(1, 2).flatten(2) @ w_o, detached(weights))": (
        "gradients are promised for the output, not for the weights"
    ),
}
RIGHT = {
    r".*wrong_if\(\w+, '\w+', 'empty'\)": "all sizes are 1 or more",
    r"multi-head-answer: (w_[qkvo]) = unsqueezed\(\1\)": "a dimension in front changes no product",
    # arguments that the docstrings leave out
    r"(attention-mask|split-heads|multi-head)-answer: .*, '(q_len|n_heads)', '(zero|negative)'\)": (
        "there is a query and a head"
    ),
    r".*, '(q_len|n_heads)', 'above 2\*\*(24|31)'\)": "so many do not fit into a test",
    r"multi-head-answer: .*, 'in half precision'\)": "x is float32 or float64",
    r"there-and-back-answer: .*, 'order', '(with negatives|with some above 2\*\*(24|31))'\)": (
        "the order is that of 0 to length - 1, and the length fits into a test"
    ),
    # the same number
    r"attention-mask-answer: .*rounded\((torch\.arange|stands_at).*, '(float32|int32)'\).*": (
        "indices below 2**24 are exact, and larger ones do not fit into a test"
    ),
    r"there-and-back-answer: .*rounded\((order|torch\.argsort\(order\)), '(float32|int32)'\).*": (
        "places below 2**24 are exact, and larger ones do not fit into a test"
    ),
    r"multi-head-answer: context = x if \w+\(context(, \S+)?\) is None else context": (
        "it is only asked whether there is a context"
    ),
}
OF_RIGHT_ANSWERS = {
    "torchs_own, multi-head-answer: heads = heads.masked_fill(~over_all(mask.any(-1, keepdim=True),"
    " mask, 'any'), 0.0)": "PyTorch's own attention gives 0 to a query that sees nothing",
}
MORE = {
    r"(split|merge)-heads-answer: .*": "numbers are only moved",
}
