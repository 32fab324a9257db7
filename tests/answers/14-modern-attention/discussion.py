"""Questions to the class about exercise 14. Numbers in the answers are computed here."""

from math import exp, sqrt

from tools.discussion import Question, row, softmax

WITH_SINK = softmax((2, 1, 0))[:2]
LINEAR = [exp(s) / (exp(2) + exp(1) + 0) for s in (2, 1)]
SHRINK = exp(0 - 2)
RIGHT = (10 * SHRINK + 20) / (SHRINK + 1)
D_K, D_ROPE, D_LAT = 128, 64, 512

QUESTIONS = [
    Question(
        "sink_adds_its_logit sink_renormalized sink_missing",
        "Two keys have the scores 2 and 1, and the sink's logit is 0. What are the two weights? "
        "What if the logit itself is added to the denominator, and not its exponential?",
        f"{row(WITH_SINK)}, which sum to {sum(WITH_SINK):.2f}: the sink has taken the rest. With "
        f"the "
        f"logit 0 added, {row(LINEAR)}, as if there were no sink. Making the weights sum to 1 "
        "again undoes what the sink is for: to let a head say that nothing matches.",
    ),
    Question(
        "block_no_rescaling block_values_not_rescaled block_maximum_of_the_block",
        "Read two keys one after the other: the scores are 0 and 2, the values 10 and 20. Keep the "
        "largest score so far, the sum of exponentials relative to it, and the sum of values. "
        "What is the state after each key, and the output?",
        f"After the first: 0, 1, 10. The maximum rises to 2, so both sums shrink by exp(−2) = "
        f"{SHRINK:.3f}, and 1 and 20 are added: {SHRINK + 1:.3f} and {10 * SHRINK + 20:.2f}. The "
        f"output is {RIGHT:.2f}. Without the shrinking it is (10 + 20)/(1 + 1) = {30 / 2:g}, as if "
        "the scores were equal.",
    ),
    Question(
        "norm_after_the_rotation norm_by_the_length norm_over_all_heads",
        "A head's vector is (1, 1), the gain (2, 1), and the rotation a quarter turn, which makes "
        "(x, y) into (−y, x). Normalize, apply the gain, rotate. Then do it with the gain after "
        "the rotation. Does a dot product with a key still depend on the distance only?",
        f"The root mean square is 1: (1, 1) becomes (2, 1) and then {row((-1, 2))}. The other "
        f"order "
        f"gives {row((-2, 1))}. A gain after the rotation scales fixed components, and a rotation "
        "does not commute with that, so the score depends on both positions.",
    ),
    Question(
        "latent_scale_of_the_contents latent_scale_of_the_entry absorbed_scale_of_what_is_sent",
        f"In latent attention a head compares {D_K} numbers of content and {D_ROPE} rotated ones. "
        f"The cache holds {D_LAT} + {D_ROPE} numbers for each token. By which root are the scores "
        "divided, also when the absorbed query is as wide as the cache entry?",
        f"By √({D_K} + {D_ROPE}) = {sqrt(D_K + D_ROPE):.1f}. Absorbing a matrix changes how a dot "
        f"product is computed and not its value, so the root of the wider vector, "
        f"{sqrt(D_LAT + D_ROPE):.1f}, would make the weights too even.",
    ),
]
