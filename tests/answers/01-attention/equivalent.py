"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

SAME_D_K = "query and key have the same last dimension"
ONE_DIMENSION = "there is one dimension, and it is both the first and the last"
EMPTY_ROW = "any finite number gives the empty row some weights, which are then set to 0"
EQUIVALENT = {
    "attention: scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])"
    " -> scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])": SAME_D_K,
    "masked-attention: scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])"
    " -> scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])": SAME_D_K,
    "masked-attention: scores = "
    "scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, 0.0)"
    " -> scores = scores.masked_fill(~mask, -math.inf)": (
        "the last line replaces the nan, and masked_fill passes no gradient to what it filled"
    ),
    "masked-attention: scores = "
    "scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, 0.0)"
    " -> scores = scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, 1.0)": (EMPTY_ROW),
    "masked-attention: scores = "
    "scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, 0.0)"
    " -> scores = scores.masked_fill(~mask, -math.inf).masked_fill(sees_nothing, -1.0)": (
        EMPTY_ROW
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
