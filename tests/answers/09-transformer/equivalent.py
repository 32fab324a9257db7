"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

TWO = "there are two dimensions here, so dimension 1 is the last one"

COUNTED = "tokens and rows are counted from 0, and no tensor of logits has 2**24 of them"

BEST = "best = decoder(text)[:, -1].argmax(dim={})"
LOSS = "return (torch.logsumexp(z, dim={}) - right).mean()"

EQUIVALENT = {
    f"greedy-answer: {BEST.format(-1)} -> {BEST.format(1)}": TWO,
    f"loss-answer: {LOSS.format(-1)} -> {LOSS.format(1)}": TWO,
    "loss-answer: logits = with_epsilon(logits, 1e-09)": (
        "the loss does not change when all logits rise together"
    ),
    "loss-answer: return squeezed((torch.logsumexp(z, dim=-1) - right).mean())": (
        "the loss has no dimensions"
    ),
    "greedy-answer: ended = near(best, end_token)": "whole numbers have no tolerance",
}

RIGHT = {
    r".*wrong_if\(\w+, '\w+', 'empty'\)": "all sizes are 1 or more",
    r"(en|de)coder-answer: (\w+_weights) = unsqueezed\(\2\)": (
        "a dimension in front changes no product"
    ),
    r"(en|de)coder-answer: ((attention|self|cross)_weights) = flipped\(\2, 0\)": (
        "each of the four tensors has the heads first, and the order of the heads does not count"
    ),
    r"greedy-answer: best = widened\(decoder\(text\).*": (
        "float64 holds every number of a narrower format"
    ),
    r"loss-answer: .*rounded\((y|targets[^,]*|torch\.arange\(.*\)), '(float|int)32.*": COUNTED,
    r"greedy-answer: .*rounded\((?!decoder\(text\)(\[:, -1\])?,).*, '(float32|int32)'\).*": COUNTED,
    r"(loss|greedy)-answer: .*len\((rounded|kept)\((y|prompt), .*": "only its length is read",
    r"(loss|greedy)-answer: .*wrong_if\(.*, 'with (negatives|some above 2\*\*(24|31))'\)": (
        "a token is a number from 0 to vocab_size − 1, and no tensor of logits has 2**24 columns"
    ),
    r"greedy-answer: .*wrong_if\(greedy, 'end_token', '(negative|above 2\*\*(24|31))'\)": (
        "the end token is a number from 0 to vocab_size − 1"
    ),
    r"greedy-answer: .*\(greedy, 'max_new_tokens', '(negative|zero|above 2\*\*(24|31))'\)": (
        "at least one token is asked for, and an answer may take memory for all of them beforehand"
    ),
    r"(loss|encoder|decoder)-answer: .*(wrong|writes)_if\(.*, 'in half precision'\)": (
        "the docstring has float32 and float64"
    ),
    r"(loss|encoder|decoder)-answer: .*(wrong|writes)_if\(.*, '(counts|\w*real)', 'all False'\)": (
        "at least one row counts, and at least one token of each text is real"
    ),
    r"shift-answer: .*(wrong|writes)_if\(teacher_forcing, '(tokens|real)', 'size 1 at -1'\)": (
        "a text has at least two tokens"
    ),
}
OF_RIGHT_ANSWERS = {
    "torch_functions, greedy-answer: while end < text.shape[1] and len(rounded(going,"
    " 'int32')):": "only the length is read",
}
MORE = {r"shift-answer: .*": "tokens are whole numbers, which are only moved"}
