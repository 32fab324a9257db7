"""Questions to the class about exercise 03. Numbers in the answers are computed here."""

from math import cos, hypot, pi, sin

from tools.discussion import Question, row

POSITION = 10
RATE, OTHER = 100 ** (-2 / 4), 100 ** (-3 / 4)
LENGTH = hypot(sin(POSITION * RATE), cos(POSITION * OTHER))
FAR = 45
PHASE = FAR % (2 * pi)

QUESTIONS = [
    Question(
        "frequencies_positive_exponent pairs_counted_from_one divided_by_last_pair",
        "With d = 4 and base 10000 there are two pairs. Write their frequencies. What are they "
        "with the sign of the exponent changed, and what if pairs are counted from 1?",
        f"{row((1, 10000 ** (-2 / 4)), 4)}: the first pair turns by 1 radian per token, the second "
        f"a "
        f"hundred times more slowly. With the other sign {row((1, 10000 ** (2 / 4)), 4)}: the "
        "second pair turns by 100 radians per token, so neighbours look unrelated. Counted from 1, "
        f"{row([10000 ** (-2 * i / 4) for i in (1, 2)], 6)}: no pair resolves neighbouring tokens.",
    ),
    Question(
        "cosine_with_its_own_exponent sines_then_cosines",
        "With d = 4 and base 100, the second pair turns by 0.1 radian per token. Someone gives its "
        f"cosine an exponent of its own, 3/4 in place of 2/4. How long is the pair at position "
        f"{POSITION}, and how long should it be?",
        f"A sine and a cosine of the same angle have the length 1. Here it is {LENGTH:.2f}. The "
        "two components no longer lie on a circle, so no rotation moves the code of one position "
        "to that of another, and the dot product of two codes depends on more than the distance.",
    ),
    Question(
        "rows_moved_back shift_with_the_sign_of_rope position_without_sign",
        "A pair with frequency 1 stores (sin pos, cos pos). You want the code of position 3 from "
        "that of position 2. Which 2 × 2 matrix does it, and where do you arrive with its "
        "transpose?",
        f"Adding 1 to the angle: sin 3 = sin 2 cos 1 + cos 2 sin 1, so the code "
        f"{row((sin(2), cos(2)))} becomes {row((sin(3), cos(3)))}. The transpose subtracts 1 and "
        f"arrives at position 1, {row((sin(1), cos(1)))}. With rows in place of columns the matrix "
        "stands on the right and has to be transposed; one transposition too many moves back.",
    ),
    Question(
        "reads_fastest_pair_only reads_slowest_pair_only reads_with_one_turn_less",
        f"The fastest pair shows the phase {PHASE:.2f}. Which of the positions 0 to 50 can it be? "
        "A pair with frequency 0.01 shows the phase 0.45, give or take 0.02. What do the two know "
        "together?",
        f"The fastest pair has turned an unknown number of times: 1 has the phase 1.00, and {FAR} "
        f"has {PHASE:.2f}, hardly different. The slow pair says 45 give or take 2, with no doubt "
        "about turns. Slow pairs find the turn, fast ones the exact place, as the hands of a clock "
        f"do: {FAR}.",
    ),
]
