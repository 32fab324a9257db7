"""Questions to the class about exercise 05. Numbers in the answers are computed here."""

from math import cos

import torch

from lib.rope import apply_rope
from tools.discussion import Question, row

VECTOR = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
QUARTER = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])  # cosines, sines
NEIGHBOURS = apply_rope(VECTOR, *QUARTER, layout="interleaved")[0]
HALVES = apply_rope(VECTOR, *QUARTER, layout="half")[0]
ROWS = list(range(8))
WITHIN = [*ROWS[0:4:2], *ROWS[1:4:2], *ROWS[4::2], *ROWS[5::2]]
ACROSS = [*ROWS[::2], *ROWS[1::2]]

QUESTIONS = [
    Question(
        "layouts_exchanged always_interleaved results_always_interleaved",
        "Rotate the vector (1, 2, 3, 4), the first pair by a quarter turn counter-clockwise and "
        "the second not at all: once with neighbours as pairs, once with component i and i + 2. "
        "Which one is right?",
        f"Neighbours: {row(NEIGHBOURS)}. Halves: {row(HALVES)}. Both are: scores agree as long as "
        "query and key use the same layout. They differ as soon as weights trained with one are "
        "run with the other.",
    ),
    Question(
        "heads_only_queries heads_opposite_ways relative_m_minus_n",
        "Query and key are both (1, 0), and the pair turns by 1 radian per position. What is the "
        "score for the positions 2 and 3, and for 12 and 13? What if only the query is rotated, "
        "or the key is rotated the other way?",
        f"The score is the cosine of the angle between them, {cos(1):.2f} both times: the distance "
        f"is 1. With the query alone rotated it is {cos(2):.2f} and {cos(12):.2f}; with opposite "
        f"directions the angle is the sum of the positions, {cos(5):.2f} and {cos(25):.2f}. Only "
        "the first depends on the distance alone. If both turn the wrong way, scores do not show "
        "it, and stored keys do.",
    ),
    Question(
        "second_from_the_new_first halves_swapped_without_minus",
        "A quarter turn makes (x, y) into (−y, x). What does this program make of (3, 4): first "
        "x = −y, then y = x?",
        "x becomes −4, and then y becomes −4 too: (−4, −4), where (−4, 3) was wanted. The second "
        "line reads what the first has overwritten. If the minus is forgotten the result is "
        "(4, 3), a mirror image, whose length is right.",
    ),
    Question(
        "convert_across_heads convert_odd_first convert_columns",
        "The query matrix of two heads of width 4 has the rows 0 to 7, with neighbours as pairs. "
        "In which order do they stand for the layout with halves?",
        f"{row(WITHIN)}: within each head the even rows come first. Sorted over all rows, "
        f"{row(ACROSS)}, half of head 1 lands in head 0. The columns stay where they are, because "
        "they are the components of the input.",
    ),
    Question(
        "interpolate_multiplies interpolate_shorter_texts_too",
        "A model was trained on texts of 8 tokens and reads one of 16 with position interpolation. "
        "Which angle does a pair with frequency 1 have at position 14? And at position 2 of a "
        "text of 6 tokens?",
        f"The frequencies are divided by 16/8, so the angle is 14/2 = {14 / 2:g}, which occurred "
        f"in "
        f"training. Multiplied, it would be {14 * 2}. A shorter text stays as it is, with the "
        f"angle "
        "2: dividing by 6/8 would make the pairs faster than in training.",
    ),
]
