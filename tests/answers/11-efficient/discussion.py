"""Questions to the class about exercise 11. Numbers in the answers are computed here."""

from fractions import Fraction
from math import exp

from tools.discussion import Question, row, softmax

KEYS, VALUES = (1, 2, 3), (10, 20, 60)
SUM = [sum(k * v for k, v in list(zip(KEYS, VALUES, strict=True))[:n]) for n in (1, 2, 3)]
TOTAL = [sum(KEYS[:n]) for n in (1, 2, 3)]
OUTPUT = [Fraction(s, t) for s, t in zip(SUM, TOTAL, strict=True)]
FEATURES = exp(3), exp(1)
SHARE = [each / sum(FEATURES) for each in FEATURES]

QUESTIONS = [
    Question(
        "piece_total_of_the_piece piece_forgets_the_state piece_excludes_itself",
        "Linear attention with one feature: the keys' features are 1, 2, 3, the values 10, 20, 60, "
        "and every query's feature is 1. Work out the three causal outputs with running sums. "
        "What does the third become if it is read as a piece of its own, and the state is "
        "forgotten in the denominator, or altogether?",
        f"Sums of feature times value {row(SUM)}, of features {row(TOTAL)}: the outputs are "
        f"{row(OUTPUT)}. With the state in the numerator alone the third is {SUM[2]}/3 = "
        f"{SUM[2] / 3:.1f}, more than any value; with no state at all it is {VALUES[2]}, the "
        "token's own. A weighted mean always lies between the smallest and the largest value.",
    ),
    Question(
        "window_counts_the_query window_is_the_whole_width window_one_side_only",
        "A window of 2 lets a query see keys at a distance of up to 2. Which positions does the "
        "query at 5 see in a decoder, and which in an encoder? Which does it see if the window "
        "counts the query itself?",
        f"In a decoder {row((3, 4, 5))}, in an encoder {row((3, 4, 5, 6, 7))}. If the query is "
        f"counted, {row((4, 5))} and {row((4, 5, 6))}. A window of 0 leaves the query itself, and "
        "is not the same as no window.",
    ),
    Question(
        "linformer_softmax_first linformer_scale_of_the_rank",
        "Linformer with rank 1 mixes two keys half and half. The scores of the two keys would be 2 "
        "and 0. Which weight does the mixed key get? What is left of the method if the weights of "
        "both keys are mixed after the softmax?",
        f"The mixed key has the score 1 and, being alone, the weight {softmax((1,))[0]:g}. The "
        f"other "
        f"way first needs both weights, {row(softmax((2, 0)))}: all scores are computed, which is "
        "the work that was to be saved. A mixture of weights also sums to something else.",
    ),
    Question(
        "features_largest_is_one linear_largest_of_each_key linear_no_stabiliser",
        "Two keys have the features exp 3 and exp 1, and the query's feature is 1. What are their "
        "weights? To avoid overflow, someone subtracts from each key its own largest exponent. "
        "What are the weights then?",
        f"{row(SHARE)}. Each key divided by a number of its own has the feature 1, and the weights "
        f"become {row((0.5, 0.5))}. What is subtracted has to be the same for all keys: only then "
        "does it cancel between numerator and denominator.",
    ),
    Question(
        "global_is_seen_but_sees_not global_sees_but_is_not_seen global_breaks_the_causal_rule",
        "An encoder reads 5 tokens with a window of 1, and token 0 is global. Write the first row "
        "and the first column of the mask. What changes in a decoder?",
        f"Both are {row((1, 1, 1, 1, 1))}: the token sees all and is seen by all. In a decoder the "
        f"first row is {row((1, 0, 0, 0, 0))}, because a global token may not look ahead either, "
        f"and "
        "the column stays.",
    ),
]
