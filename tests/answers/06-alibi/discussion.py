"""Questions to the class about exercise 06. Numbers in the answers are computed here."""

from tools.discussion import Question, row, softmax

SLOPES = [2 ** (-8 * h / 4) for h in (1, 2, 3, 4)]
OFFICIAL = [*SLOPES, *[2 ** (-8 * h / 8) for h in (1, 3)]]

QUESTIONS = [
    Question(
        "bias_positive bias_rewards_the_future bias_after_softmax",
        "Three keys have equal scores and the distances 0, 1 and 2 from the query, and the slope "
        "is 1/2. What are the weights? What if the bias has the wrong sign, and what if it is "
        "added to the weights after the softmax?",
        f"{row(softmax((0, -0.5, -1)))}. With the wrong sign {row(softmax((0, 0.5, 1)))}: the "
        f"farthest key wins. Added afterwards: {row([1 / 3, 1 / 3 - 0.5, 1 / 3 - 1])}, and a "
        "negative weight is none.",
    ),
    Question(
        "geometric_counts_from_zero geometric_whole_exponents official_is_the_formula",
        "Write the slopes of 4 heads. What is the slope of the first of 16 heads, and what does "
        "Python make of it with 8 // 16? Which 6 slopes does the official code use for 6 heads?",
        f"{row(SLOPES, 4)}. The first of 16 is 2^(−8/16) = {2**-0.5:.2f}; whole division makes the "
        f"exponent 0 and the slope 1. For 6 heads the official code takes the 4 slopes above and "
        f"then two of those for 8 heads: {row(OFFICIAL, 4)}, not the formula's "
        f"{row([2 ** (-8 * h / 6) for h in range(1, 7)], 3)}.",
    ),
    Question(
        "causal_minus_1e4 causal_minus_1e9",
        "With slope 1/2, a visible key is 30,000 tokens away, and a later key is hidden by adding "
        "−10,000. Both scores are 0 otherwise. Which of the two does the query read?",
        f"The visible key has −15,000 and the hidden one −10,000: the weights are "
        f"{row(softmax((-15000, -10000)))}. The query reads exactly what it must not see. No "
        f"finite "
        "number is low enough for every distance, and −∞ is.",
    ),
    Question(
        "count_for_position last_stored_for_largest renumbered",
        "A cache has thrown tokens away and holds the positions 0, 6 and 5, in this order. Which "
        "position does the next token get? What do the number of tokens, and the last one stored, "
        "say?",
        f"One more than the largest: {max(0, 6, 5) + 1}. Counting says 3 and the last entry says "
        "6; with either, two tokens share a position or distances shrink. The gaps stay, because "
        "the bias measures distance in the text.",
    ),
]
