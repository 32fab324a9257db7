"""Questions to the class about exercise 04. Numbers in the answers are computed here."""

from math import floor, log

from tools.discussion import Question, row

EXACT, BUCKETS, LARGEST = 8, 16, 128


def bucket(distance: int) -> int:
    """T5's bucket in a decoder, before the numbers are clamped."""
    if distance < EXACT:
        return distance
    return EXACT + floor(log(distance / EXACT) / log(LARGEST / EXACT) * (BUCKETS - EXACT))


DISTANCES = (8, 16, 64, 1000)
CONTENT_Q, PLACE_Q, CONTENT_K, PLACE_K = 2, 1, 3, 5

QUESTIONS = [
    Question(
        "differences_query_minus_key bucket_query_minus_key shaw_scores_query_minus_key",
        "A query is at position 3, the keys are at 1, 3 and 4. Write the differences n − m. Which "
        "of the keys come later than the query? What would a table of vectors learned with n − m "
        "do if you read it with m − n?",
        f"{row([key - 3 for key in (1, 3, 4)])}: positive means later. Read with m − n, each past "
        "token gets the vector of a future one. Papers use both signs (T5 and Shaw n − m, "
        "Transformer-XL and DeBERTa m − n), so it has to be checked each time.",
    ),
    Question(
        "shaw_scores_index_not_shifted shaw_scores_not_clipped shaw_scores_clip_not_symmetric",
        "A table has a vector for each difference from −2 to 2. In which row is the vector of −1? "
        "What does Python return for the index −1, and for a difference of −4 that was not "
        "clipped, with 2 added?",
        f"In row −1 + 2 = {-1 + 2}. The index −1 is the last row, the vector of +2: no error, the "
        f"wrong vector. A difference of −4 becomes the index {-4 + 2}, counted from the end: the "
        f"vector of +{range(-2, 3)[-4 + 2]}. Clip first, then shift.",
    ),
    Question(
        "bucket_no_last_bucket bucket_scale_without_the_exact_part bucket_exact_one_too_few",
        "T5 in a decoder, with 16 buckets of which 8 are exact, and the largest distance 128. "
        "Which buckets do the distances 7, 8, 16, 64 and 1000 get?",
        f"7 has its own bucket, 7. The logarithmic part gives {row(map(bucket, DISTANCES))} for "
        f"8, 16, 64 and 1000, and the last is clamped to {BUCKETS - 1}. Each doubling of the "
        f"distance costs {bucket(16) - bucket(8)} buckets. Without the clamp, the table has no row "
        f"{bucket(1000)}.",
    ),
    Question(
        "terms_key_named_first terms_cross_transposed terms_only_the_sum_is_right",
        "One dimension: the query is 2 (content) plus 1 (position), the key 3 plus 5. Multiply "
        "out. Which of the four products is content–position? Which mistake does the sum not show?",
        f"{(CONTENT_Q + PLACE_Q) * (CONTENT_K + PLACE_K)} = {CONTENT_Q * CONTENT_K} + "
        f"{CONTENT_Q * PLACE_K} + {PLACE_Q * CONTENT_K} + {PLACE_Q * PLACE_K}. The query's part is "
        f"named first, so content–position is {CONTENT_Q} · {PLACE_K} = {CONTENT_Q * PLACE_K}; the "
        f"other cross term is {PLACE_Q * CONTENT_K}. Exchanged, they have the same sum: a test "
        "that only adds up cannot see it.",
    ),
]
