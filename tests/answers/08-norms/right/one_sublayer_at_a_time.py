"""Blocks from one function that wraps a sublayer, in a loop."""


# %% pre-norm-answer
def pre_norm_block(x, attention, feed_forward, norm_1, norm_2):
    def wrap(y, sublayer, norm):
        out = sublayer(norm(y))
        return out + y

    for sublayer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        x = wrap(x, sublayer, norm)
    return x


# %% post-norm-answer
def post_norm_block(x, attention, feed_forward, norm_1, norm_2):
    for sublayer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        total = x.clone()
        total += sublayer(x)
        x = norm(total)
    return x
