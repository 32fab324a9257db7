"""Questions to the class about exercise 08. Numbers in the answers are computed here."""

from math import sqrt

import torch

from tools.discussion import Question, row

TOKENS = torch.tensor([[0.0, 2.0], [10.0, 30.0]])
BY_TOKEN = [(-1, 1), (-1, 1)]
OVER_BATCH = (TOKENS - TOKENS.mean(0)) / TOKENS.std(0, correction=0)
RMS = sqrt((3**2 + 4**2) / 2)

QUESTIONS = [
    Question(
        "variance_by_d_minus_1 root_forgotten rms_mean_taken_out",
        "Normalize the token (1, 3) by hand, with ε = 0. What comes out if the variance is "
        "divided by d − 1, as torch.var does, and what does RMSNorm make of it?",
        f"The mean is 2 and the variance 1: {row((-1, 1))}. Divided by d − 1 the variance is 2 and "
        f"the result {row((-1 / sqrt(2), 1 / sqrt(2)))}; with two features the difference is as "
        f"large as it can be, with 768 hardly visible. RMSNorm keeps the mean: "
        f"{row((1 / sqrt(5), 3 / sqrt(5)))}.",
    ),
    Question(
        "over_the_batch over_dimension_1 a_text_as_a_whole",
        "A batch has the two tokens (0, 2) and (10, 30). What does LayerNorm return, and what do "
        "you get if you normalize each feature over the batch?",
        f"LayerNorm: {row(BY_TOKEN[0])} for both; each token is on its own, so nothing depends on "
        f"its neighbours. Over the batch: {row(OVER_BATCH[0])} and {row(OVER_BATCH[1])}. A token "
        "would then change when another text in the batch does.",
    ),
    Question(
        "eps_forgotten eps_outside_the_root equal_features_set_to_zero",
        "What does LayerNorm make of the token (5, 5), without ε and with it? Is it good enough to "
        "replace the result by 0 afterwards where it is not a number?",
        "Without ε it is 0/0. With ε inside the root the denominator is √ε and the result (0, 0). "
        "Replaced afterwards, the result is right and the gradient is still not a number: it "
        f"passes through 0/0. With ε = 10⁻⁵ the root is {sqrt(1e-5):.4f}; outside the root, ε "
        f"would be {sqrt(1e-5) / 1e-5:.0f} times smaller.",
    ),
    Question(
        "pre_is_post pre_residual_from_the_norm pre_norm_on_what_is_added",
        "Both sublayers of a block return 0. What does a pre-norm block make of the token (3, 5), "
        "and what does a post-norm block? Which mistakes does this find at once?",
        f"Pre-norm returns (3, 5): nothing touches the stream but the sums. Post-norm returns the "
        f"normalized sum, {row((-1, 1))}. A pre-norm block that adds to the normalized token "
        "returns that too. Normalizing what a sublayer returns does not show here, because the "
        "norm of 0 is 0; it needs a sublayer that returns something.",
    ),
    Question(
        "rms_by_length rms_eps_outside_the_root",
        "What is the root mean square of (3, 4), and what is the length of the vector? How long "
        "is the vector after RMSNorm?",
        f"The root mean square is √12.5 = {RMS:.2f}, the length is 5. After RMSNorm the length is "
        f"5/{RMS:.2f} = √2: a vector of d features gets the length √d, so that each feature is "
        "about 1 in size, whatever the width.",
    ),
]
