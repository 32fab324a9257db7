"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

EQUIVALENT = {
    "attention-mask-answer: stands_at = torch.arange(q_len).unsqueeze(-1) + k_len - q_len"
    " -> stands_at = torch.arange(q_len).unsqueeze(1) + k_len - q_len": (
        "behind the only dimension is behind the first one"
    ),
}
