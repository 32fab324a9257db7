"""Questions to the class about exercise 02. Numbers in the answers are computed here."""

import torch

from tools.discussion import Question, row

TOKENS = torch.arange(1, 9).view(2, 4)
RIGHT = TOKENS.view(2, 2, 2).transpose(0, 1)[0]
VIEWED = TOKENS.view(2, 2, 2)[0]
HEADS, W_O = torch.tensor([3, 5]), torch.tensor([[1, 2], [10, 20]])
SHARES = HEADS[:, None] * W_O
TEXT = ["a", "b", "c"]
ORDER = [1, 2, 0]
MOVED = [TEXT[i] for i in ORDER]
TWICE = [MOVED[i] for i in ORDER]


def names(letters):
    return " ".join(letters)


QUESTIONS = [
    Question(
        "split_by_view heads_by_view merge_not_moved",
        "Two tokens have the components 1 2 3 4 and 5 6 7 8, and there are two heads. Which "
        "numbers belong to head 0? What does head 0 get if you view the tensor as (heads, tokens, "
        "components) without moving a dimension?",
        f"Head 0 has the first half of each token: {row(RIGHT[0])} and {row(RIGHT[1])}. The view "
        f"gives it {row(VIEWED[0])} and {row(VIEWED[1])}: both halves of the first token, as if "
        "they were two tokens. The shape is the same, so nothing complains.",
    ),
    Question(
        "contributions_of_columns contributions_equal_shares w_o_for_each_head_and_mean",
        "Two heads of width 1 return 3 and 5. The output matrix has the rows (1, 2) and (10, 20). "
        "What does each head add to the result?",
        f"Head 0 meets the first row and adds {row(SHARES[0])}; head 1 adds {row(SHARES[1])}; "
        f"together {row(SHARES.sum(0))}. Each head writes into every component. Cutting the "
        "matrix into columns would give each head a place of its own, and the mean of the shares "
        "is half of the sum.",
    ),
    Question(
        "mask_hides_queries mask_or mask_by_count",
        "A text in a batch is: a, b, padding. Write the 3 × 3 mask that is causal and hides the "
        "padding. Which rule hides a row, which a column? What may a see if the two rules are "
        "combined with or?",
        f"The rows are {row((1, 0, 0))}, {row((1, 1, 0))} and {row((1, 1, 0))}. Padding is a key "
        "that nobody may read, so it hides a column; what its own query computes is never used. "
        f"With or, the first row is {row((1, 1, 0))}: b is real, so a sees its future. And if the "
        "padding stands in front, counting the real tokens hides the wrong columns.",
    ),
    Question(
        "order_twice order_by_swapping inverse_first",
        "A text a b c is reordered by (1, 2, 0): row i of the result is row order[i] of the text. "
        "Write the result. How do you get a b c back, and what do you get by applying the same "
        "order once more? Why does an order that swaps two tokens not show the difference?",
        f"The result is {names(MOVED)}. Once more gives {names(TWICE)}. The inverse order, "
        f"{row([ORDER.index(i) for i in range(3)])}, leads back. A swap is its own inverse, so "
        "with two tokens both ways look right.",
    ),
    Question(
        "values_from_x always_self keys_cut_by_q_len",
        "In cross-attention the target has 2 tokens and the source 5. Which shapes have the "
        "scores of one head and its output? What goes wrong with values from the target, and why "
        "would nobody notice with 5 tokens on both sides?",
        "The scores are 2 × 5 and the output has 2 rows. The 5 weights of a query need 5 values, "
        "one for each key; values of the target are 2, and the product fails. With equal lengths "
        "all shapes fit, and the output mixes the wrong tokens without a word. This is why the "
        "hidden tests use different sizes everywhere.",
    ),
]
