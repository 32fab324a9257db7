"""Questions to the class about exercise 15. Numbers in the answers are computed here."""

from fractions import Fraction

from tools.discussion import Question, row

P, Q = (
    (Fraction(5, 10), Fraction(3, 10), Fraction(2, 10)),
    (Fraction(2, 10), Fraction(7, 10), Fraction(1, 10)),
)
ACCEPT = [min(Fraction(1), p / q) for p, q in zip(P, Q, strict=True)]
LEFT = [max(Fraction(0), p - q) for p, q in zip(P, Q, strict=True)]
REFUSED = 1 - sum(a * q for a, q in zip(ACCEPT, Q, strict=True))
RESIDUAL = [each / sum(LEFT) for each in LEFT]
OUT = [q * a + REFUSED * r for q, a, r in zip(Q, ACCEPT, RESIDUAL, strict=True)]
WRONG = Q[1] * ACCEPT[1] + REFUSED * P[1]
assert list(P) == OUT
TOKENS, BLOCK = 6, 4


def blocks(tokens: int) -> int:
    return -(-tokens // BLOCK)


QUESTIONS = [
    Question(
        "sampled_replaces_from_the_model sampled_quotient_upside_down sampled_accepts_by_p",
        f"The model's probabilities are {row(P)} and the draft's {row(Q)}. With which probability "
        f"is "
        "the second token accepted if it is drafted? What is a rejected token replaced from? Show "
        "that the second token comes out as often as the model wants it.",
        f"With p/q = {float(ACCEPT[1]):.2f}. Refused altogether: {float(REFUSED):g}. The residual "
        f"max(p − q, 0), normalized, is {row(RESIDUAL)}: the second token has no share in it, "
        f"because it was proposed too often already. So it comes out with {float(Q[1]):g} · "
        f"{float(ACCEPT[1]):.2f} = {float(OUT[1]):g}. Replaced from the model itself it would be "
        f"{float(WRONG):g}, not {float(P[1]):g}.",
    ),
    Question(
        "greedy_counts_after_a_wrong_token greedy_row_of_the_length greedy_rows_shifted",
        "The draft proposes 5, 7, 7. The model's most likely tokens are 5, 8, 7, 4: one for each "
        "drafted token, and one after the last. How many are accepted, and which token is next?",
        "One: 5. The second differs, so everything after it was drafted for another text, also the "
        "7 that happens to agree. The next token is 8, the model's own in the row of the first "
        "wrong one. The 4 counts only if the whole draft is accepted.",
    ),
    Question(
        "prefix_rounds_up prefix_reads_nothing prefix_whole_prompt_one_less",
        "Blocks have 4 tokens. A prompt of 8 tokens is in memory as a whole. How many tokens can "
        "be reused? And how many of a prompt of 13 of which the first 10 are in memory?",
        f"{7 // BLOCK * BLOCK}: the last token has to be read, since its logits are needed, so 7 "
        f"are "
        f"left, and only whole blocks are shared. Of 13 it is {10 // BLOCK * BLOCK}: the third "
        "block holds other tokens from its third place on. Taking one off after the rounding gives "
        "7, and a block that cannot be shared.",
    ),
    Question(
        "codes_step_by_two_to_the_bits keys_truncated keys_per_token",
        "Quantize 0, 1.2, 2 and 3 to 2 bits. What is the step, and which codes come out? What if "
        "the range is divided by 2²? Why do keys share a step along the tokens and values along "
        "the channels?",
        f"There are 4 codes and 3 steps, so the step is 3/3 = 1, and the codes are "
        f"{row([round(x) for x in (0, 1.2, 2, 3)])}. With 3/4 the largest number gets the code "
        f"{round(3 / 0.75)}, which 2 bits do not have. Keys have a few channels that are large for "
        "every token: grouped by channel, these do not make the steps of all others coarse.",
    ),
    Question(
        "memory_fork_copies memory_writes_into_shared_blocks memory_copies_full_blocks",
        f"Blocks hold {BLOCK} tokens. A text of {TOKENS} tokens is forked. How many blocks are in "
        "use, and how many after one token is added to the copy? What if nothing is copied, and "
        "what if the fork copies everything at once?",
        f"Before and after the fork {blocks(TOKENS)}: both texts list the same ones. The new token "
        f"goes into the half-full block, which is copied first: {blocks(TOKENS) + 1}. The full "
        f"block "
        "stays shared. Without the copy the token appears in the other text too; copied at once, "
        f"{2 * blocks(TOKENS)} blocks are in use from the beginning.",
    ),
]
