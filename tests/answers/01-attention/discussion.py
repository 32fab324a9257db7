"""Questions to the class about exercise 01. Numbers in the answers are computed here."""

from math import inf

import torch

from tools.discussion import Question, row, softmax

SCORES = (2.0, 1.0, 2.0)
KEPT = softmax(SCORES)
OVERFLOW = torch.exp(torch.tensor(1000.0)).item()

QUESTIONS = [
    Question(
        "scores_set_to_zero mask_after_softmax values_zeroed",
        "Three keys have the scores 2, 1 and 2, and the third may not be seen. Anna sets its score "
        "to 0 before the softmax, Ben sets its weight to 0 after the softmax, Carla sets its score "
        "to −∞. Work out the three rows of weights. Which rows sum to 1, and in which does the "
        "third key still matter?",
        f"Anna: {row(softmax((2, 1, 0)))}; a score of 0 is an ordinary score. "
        f"Ben: {row((*KEPT[:2], 0))}, which sums to {sum(KEPT[:2]):.2f}: the third key still "
        f"takes its share of the denominator. Carla: {row(softmax((2, 1, -inf)))}, the softmax "
        "of the first two alone. Only Carla's third key has no influence.",
    ),
    Question(
        "unscaled scale_after_softmax scale_by_k_len",
        "With d_k = 64, two keys have the dot products 8 and 0 with a query. What are the weights "
        "with the factor 1/√d_k, and without it? What does dividing the weights, and not the "
        "scores, by √d_k do to the output?",
        f"With it: {row(softmax((1, 0)))}. Without it: {row(softmax((8, 0)), 4)}, so the query "
        "reads one key and hardly any gradient reaches the other. Dividing the weights leaves "
        "that as it is and shrinks the output, because the weights then sum to 1/8. The number of "
        "keys has no part in it: a dot product has d_k terms.",
    ),
    Question(
        "top_left_default offset_ignored strictly_before",
        "Three tokens are in the cache and a new one arrives. Its query is the only row of the "
        "mask. Write the row. Then write the top row of a 4 × 4 causal mask. When are the two "
        "confused, and what does the new token see then?",
        f"The row is {row((1, 1, 1, 1))}: the new token is the last one and sees all. The top row "
        f"of a square mask is {row((1, 0, 0, 0))}; a mask that is aligned at the top left lets the "
        "new token see the oldest token only. With equally many queries and keys both are the "
        "same, "
        f"so a test on a square mask cannot tell. With a strict inequality the row is "
        f"{row((1, 1, 1, 0))}, and the first token of a text sees nothing.",
    ),
    Question(
        "softmax_overflow softmax_subtracts_mean softmax_global_maximum",
        "Compute the softmax of the row 1000, 999 in float32 with the formula as it stands. What "
        "may you subtract from all scores without changing the result, and why does the row's own "
        "largest score work where the mean, or the largest score of the whole tensor, does not?",
        f"exp(1000) is {OVERFLOW} in float32, and ∞/∞ is not a number. Any number may be "
        f"subtracted: it cancels. After the largest one the row is (0, −1), with the weights "
        f"{row(softmax((1000, 999)))}. The mean is −∞ as soon as one score is. With the largest "
        "score of another row, both exponentials may be 0, and 0/0 is not a number either.",
    ),
    Question(
        "row_for_position row_of_m_for_order values_unsorted",
        "A cache holds three keys, in this order: those of the positions 7, 2 and 5. A query is at "
        "position 5. Which rows does it see? What do you get from the first 5 + 1 rows, and what "
        "if you sort the keys by position and forget the values?",
        "It sees the second and the third row, because 2 and 5 are at most 5. The first six rows "
        "are all three, with the future token 7 among them. If only the keys are sorted, each "
        "weight meets another token's value: right weights, wrong output. Position and row are "
        "two numbers, and only positions may be compared.",
    ),
    Question(
        "empty_row_nan minus_1e9_uniform nan_replaced_afterwards",
        "A query may see none of three keys. What should its output be, what comes out if their "
        "scores are −∞, and what if they are −10⁹?",
        "The exercise asks for zeros: nothing was seen. With −∞ in all places each weight is 0/0. "
        f"With −10⁹ the softmax sees three equal scores and returns {row(softmax([-1e9] * 3))}: "
        "the query reads everything that was to be hidden. If the result is repaired afterwards "
        "the numbers look right, but the gradient has passed through 0/0.",
    ),
]
