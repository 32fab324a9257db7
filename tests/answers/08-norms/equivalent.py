"""Mutants of the solutions that no test can tell from them: the mutant, and why."""

ZIP = "gradients-answer: for first, second in zip(w_1, leaves, strict=True): -> "

EQUIVALENT = {
    ZIP + "for first, second in zip(w_1, leaves):": "each layer has both of its matrices",
    ZIP + "for first, second in zip(w_1, leaves, strict=False):": (
        "each layer has both of its matrices"
    ),
    "gradients-answer: leaves = [matrix.clone().requires_grad_() for matrix in w_2]"
    " -> leaves = [matrix.requires_grad_() for matrix in w_2]": (
        "the matrices of a stack that needs no gradient are tensors of their own, and leaves"
    ),
}
