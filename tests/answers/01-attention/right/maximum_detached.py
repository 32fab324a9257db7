"""Detaches what is subtracted: the weights do not depend on it, so no gradient is lost."""


# %% softmax
def softmax(scores, dim):
    powers = (scores - scores.max(dim, keepdim=True).values.detach()).exp()
    return powers / powers.sum(dim, keepdim=True)
