"""What breaks each claim of chapter 11, and nothing else in it."""

import math
from collections.abc import Callable

import torch

from tests.course.execution import Perturbation


def as_many_queries_as_keys(attend: Callable) -> Callable:
    """Fill up the queries until there are as many as keys, and throw their outputs away."""

    def attend_wastefully(query, key, value, **options):
        q_len, missing = query.shape[-2], key.shape[-2] - query.shape[-2]
        if missing <= 0 or "return_weights" not in options:
            return attend(query, key, value, **options)
        filled = torch.nn.functional.pad(query, (0, 0, 0, missing))
        output, weights = attend(filled, key, value, **options)
        return output[..., :q_len, :], weights[..., :q_len, :]

    return attend_wastefully


def twice_as_wide(make: type) -> Callable:
    """Take twice the width of a token where the layer should be four times as wide."""
    return lambda d_model, d_ff=None, **options: make(d_model, d_ff or 2 * d_model, **options)


def straight(feed_forward: type) -> type:
    """Leave out the activation function."""

    class Wrong(feed_forward):
        def forward(self, x):
            return self.w_2(self.w_1(x))

    return Wrong


def offset_ignored(make: Callable) -> Callable:
    """Let query 0 stand at key 0, whatever the lengths are."""
    return lambda q_len, k_len, **options: make(q_len, k_len, **{**options, "offset": 0})


def both_sides_together(make: Callable) -> Callable:
    """Take the window for the width of both sides together."""

    def make_wrongly(q_len, k_len, *, window, causal=True, **options):
        window = window if causal else window // 2
        return make(q_len, k_len, window=window, causal=causal, **options)

    return make_wrongly


def seen_by_nobody(make: Callable) -> Callable:
    """Let global tokens see everything, and nobody see them."""

    def make_wrongly(q_len, k_len, *, global_tokens=(), **options):
        mask = make(q_len, k_len, **options)
        for token in global_tokens:
            mask[token] = make(q_len, k_len, global_tokens=global_tokens, **options)[token]
        return mask

    return make_wrongly


def values_mixed_like_keys(attend: Callable) -> Callable:
    """Use the matrix for the keys twice."""

    def attend_wrongly(query, key, value, key_projection, value_projection, **options):
        return attend(query, key, value, key_projection, key_projection, **options)

    return attend_wrongly


def scaled_by_rank(attend: Callable) -> Callable:
    """Divide by the root of the rank, where the scale is not given."""

    def attend_wrongly(query, key, value, key_projection, value_projection, *, scale=None):
        scale = 1 / math.sqrt(key_projection.shape[-2]) if scale is None else scale
        return attend(query, key, value, key_projection, value_projection, scale=scale)

    return attend_wrongly


def equal_lengths(draw: Callable) -> Callable:
    """Give orthogonal draws the length √d, which is right in the mean square alone."""

    def draw_wrongly(n_features, head_dim, *, orthogonal=True, **options):
        rows = draw(n_features, head_dim, orthogonal=orthogonal, **options)
        if orthogonal:
            rows = rows / rows.norm(dim=-1, keepdim=True) * math.sqrt(head_dim)
        return rows

    return draw_wrongly


def always_independent(draw: Callable) -> Callable:
    def draw_wrongly(*sizes, orthogonal=True, **options):
        return draw(*sizes, orthogonal=False, **options)

    return draw_wrongly


def scaled_twice(attend: Callable) -> Callable:
    """Scale the query and the key by 1/√d each, where the scale is not given."""

    def attend_wrongly(query, key, value, *, scale=None, **options):
        scale = 1 / query.shape[-1] if scale is None else scale
        return attend(query, key, value, scale=scale, **options)

    return attend_wrongly


def forgetful(add_up: Callable) -> Callable:
    """Start each chunk afresh."""

    def add_up_wrongly(log_q, log_k, value, chunk):
        parts = (tensor.split(chunk, dim=-2) for tensor in (log_q, log_k, value))
        sums = [add_up(*part, chunk) for part in zip(*parts, strict=True)]
        return torch.cat(sums, dim=-2)

    return add_up_wrongly


def all_pairs_after_all(attend: Callable) -> Callable:
    """Make the matrix of all pairs, and throw it away."""

    def attend_wastefully(query, key, value, **options):
        query @ key.transpose(-2, -1)
        return attend(query, key, value, **options)

    return attend_wastefully


PERTURBATIONS = {
    "eq-attention-cost": Perturbation(
        "as many queries as keys",
        patch={"lib.attention.scaled_dot_product_attention": as_many_queries_as_keys},
    ),
    "prp-block-crossover": Perturbation(
        "a feed-forward part of half the width", patch={"lib.block.FeedForward": twice_as_wide}
    ),
    "prp-streaming": Perturbation(
        "the vector is not rescaled", replace=("u = u * shrink + terms", "u = u + terms")
    ),
    "eq-sliding-window": Perturbation(
        "the offset is ignored", patch={"lib.efficient.sliding_window_mask": offset_ignored}
    ),
    "prp-window-cost": Perturbation(
        "the block before is not counted", replace=("4 * n * window", "2 * n * window")
    ),
    "prp-receptive-field": Perturbation(
        "the window is both sides together",
        patch={"lib.efficient.sliding_window_mask": both_sides_together},
    ),
    "prp-window-fade": Perturbation(
        "the variance of a step from 1 to c", replace=("(window + 2) / 12", "(window - 1) / 12")
    ),
    "prp-global-tokens": Perturbation(
        "nobody sees a global token", patch={"lib.efficient.sliding_window_mask": seen_by_nobody}
    ),
    "prp-window-loss": Perturbation(
        "the weights inside are said to stay", replace=("2 * epsilon)", "epsilon)")
    ),
    "eq-linformer": Perturbation(
        "one matrix for keys and values",
        patch={"lib.efficient.linformer_attention": values_mixed_like_keys},
    ),
    "prp-linformer-exact": Perturbation(
        "scaled by the rank", patch={"lib.efficient.linformer_attention": scaled_by_rank}
    ),
    "prp-linformer-leak": Perturbation(
        "keys and values of the first two tokens are mixed",
        replace=("torch.arange(n) == 0", "torch.arange(n) <= 1"),
    ),
    "thm-rank-floor": Perturbation(
        "singular values counted from 1", replace=("sigma[rank]  #", "sigma[rank - 1]  #")
    ),
    "prp-typical-rank": Perturbation(
        "values of variance 1", replace=(".square().sum() / (3 * n)", ".square().sum() / n")
    ),
    "thm-peaked": Perturbation(
        "the other keys are said to take nothing away",
        replace=("error >= 1 - 2 * eps", "error >= 1 - eps / 2"),
    ),
    "thm-positive-features": Perturbation(
        "orthogonal draws of equal length",
        patch={"lib.efficient.performer_projection": equal_lengths},
    ),
    "thm-feature-variance": Perturbation(
        "the square of the mean is forgotten", replace=("(z @ z).exp() - 1)", "(z @ z).exp())")
    ),
    "prp-orthogonal-features": Perturbation(
        "independent draws", patch={"lib.efficient.performer_projection": always_independent}
    ),
    "eq-performer": Perturbation(
        "scaled twice", patch={"lib.efficient.performer_attention": scaled_twice}
    ),
    "prp-ratio-bias": Perturbation(
        "divided by the exact sum",
        replace=("weights @ v / weights.sum(dim=-1)", "weights @ v / exact_sum"),
    ),
    "prp-prefix-sums": Perturbation(
        "each chunk starts afresh", patch={"lib.efficient._causal_sums": forgetful}
    ),
    "eq-linear-costs": Perturbation(
        "all pairs are made after all",
        patch={"lib.efficient.performer_attention": all_pairs_after_all},
    ),
    "prp-retrieval": Perturbation(
        "all pairs are counted as wrong ones",
        replace=("expected = (n - 1) / (math.exp(beta) + n - 1)", "expected = n / math.exp(beta)"),
    ),
    "prp-crowded-memory": Perturbation(
        "the keys are taken for orthogonal",
        replace=("math.exp(-beta * (1 - t))", "math.exp(-beta)"),
    ),
    "eq-feed-forward-memory": Perturbation(
        "no activation function", patch={"lib.block.FeedForward": straight}
    ),
    "prp-learned-keys": Perturbation(
        "the values come from the text",
        replace=("layer(x, stored_k, stored_v)", "layer(x, x @ w_k, x)"),
    ),
    "eq-persistent": Perturbation(
        "the sums of the two parts are left out",
        replace=("torch.sigmoid(lead)[:, None]", "torch.sigmoid(0 * lead)[:, None]"),
    ),
    "prp-gated-state": Perturbation(
        "a pair is discounted by its own gate in place of the query's",
        replace=("gate[i + 1 : m + 1]", "gate[i:m]"),
    ),
    "prp-delta-rule": Perturbation(
        "the value is added, whatever is stored",
        replace=("torch.outer(key, value - key @ written)", "torch.outer(key, value)"),
    ),
}
