"""Softmax as exp(score − logsumexp)."""


# %% softmax
def softmax(scores, dim):
    return (scores - scores.logsumexp(dim, keepdim=True)).exp()
