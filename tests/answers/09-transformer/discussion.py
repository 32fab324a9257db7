"""Questions to the class about exercise 09. Numbers in the answers are computed here."""

import torch

from tools.discussion import Question

LOGITS = torch.tensor([0.0, -200.0])
LOG_SOFTMAX = torch.log_softmax(LOGITS, 0)[1].item()
LOG_OF_SOFTMAX = torch.log(torch.softmax(LOGITS, 0))[1].item()

QUESTIONS = [
    Question(
        "shift_missing shift_the_wrong_way shift_rolled_round",
        "The target text is: A B end. What does the decoder read, and what should it say in each "
        "row? How small can the training loss get if the shift is missing, and what does the "
        "model do when it generates?",
        "It reads: start A B, and says: A B end. Without the shift it reads what it has to say, so "
        "copying brings the loss to 0, and when it generates there is nothing to copy. Rolled "
        "round, the last row has to say start.",
    ),
    Question(
        "loss_mean_of_texts loss_divided_by_all_rows loss_sum",
        "A batch has two texts, padded to 3 tokens. The first has one token with the loss 4, the "
        "second has three with the loss 1 each. What is the mean loss of a token? What do you get "
        "from the mean of the two texts' means, and from dividing by all rows?",
        f"(4 + 3)/4 = {7 / 4:g}. The mean of the means is (4 + 1)/2 = {5 / 2:g}: the one token of "
        f"the short text counts as much as three. Divided by all 6 rows it is {7 / 6:.2f}, and "
        "would fall if there were more padding.",
    ),
    Question(
        "decoder_not_causal decoder_looks_one_ahead decoder_crosses_causally",
        "Target row 0 predicts the first word of a translation, and the source has 5 tokens. "
        "Which source tokens may it see, and which target tokens? What does the training loss "
        "look like if row t may see row t + 1?",
        "All five of the source, which is known as a whole, and of the target only itself. If row "
        "t sees row t + 1, it reads the token that it has to say, and the loss falls quickly "
        "towards 0. A loss that is too good is a symptom too. With a causal cross-attention, the "
        "first word is translated from the first source token alone.",
    ),
    Question(
        "loss_log_of_softmax loss_two_softmaxes loss_exponentials_overflow",
        "The logits are 0 and −200, and the target is the second token. What is its loss? What "
        "does float32 make of the logarithm of the softmax?",
        f"The loss is {-LOG_SOFTMAX:g}: the logit minus the logarithm of the sum of exponentials, "
        f"with the sign changed. exp(−200) is 0 in float32, so the logarithm of the softmax is "
        f"{LOG_OF_SOFTMAX}, and the loss infinite. The logarithm has to be taken before anything "
        "is rounded to 0.",
    ),
    Question(
        "encoder_post_norm encoder_without_residuals encoder_normed_residual",
        "Attention and feed-forward are replaced by functions that return 0. What should a "
        "pre-norm encoder layer return? Which mistakes does that find, and which only a function "
        "that returns its argument?",
        "Its input, unchanged. Without residuals it returns 0, with normed residuals or post-norm "
        "the normed input. What is missing is seen with functions that return their argument: the "
        "result is then the input plus its norms, so a norm in the wrong place shows.",
    ),
]
