"""What breaks each claim of chapter 04, and nothing else in it."""

from collections.abc import Callable

import torch

from tests.course.execution import Perturbation
from tests.course.faults import transposed, unaffected


def without_cross_terms(decompose: Callable) -> Callable:
    """Let the two terms in the middle vanish, as some notes do."""

    def decompose_wrongly(x, p, w_q, w_k):
        terms = decompose(x, p, w_q, w_k)
        none = torch.zeros_like(terms.content_position)
        return terms._replace(content_position=none, position_content=none)

    return decompose_wrongly


def query_minus_key(function: Callable) -> Callable:
    """Take m - n for n - m, in the last argument."""
    return lambda *arguments: function(*arguments[:-1], -arguments[-1])


def key_minus_query(score: Callable) -> Callable:
    """Take the encoding of n - m for that of m - n."""

    def score_wrongly(q, k, w_r, u, v, q_positions, k_positions):
        return score(q, k, w_r, u, v, -q_positions, -k_positions)

    return score_wrongly


def scaled(scheme: type) -> type:
    """Give T5 the usual scale."""

    class Scaled(scheme):
        def scale(self, head_dim):
            return head_dim**-0.5

    return Scaled


def one_bucket_late(sort: Callable) -> Callable:
    """Begin each logarithmic bucket of the past one token late: `<` for `<=` at the boundary."""

    def sort_wrongly(relative_position, *, bidirectional, num_buckets=32, max_distance=128):
        per_direction = num_buckets // 2 if bidirectional else num_buckets
        nearer = torch.where(
            relative_position <= -(per_direction // 2), relative_position + 1, relative_position
        )
        return sort(
            nearer,
            bidirectional=bidirectional,
            num_buckets=num_buckets,
            max_distance=max_distance,
        )

    return sort_wrongly


def always_scaled(attend: Callable) -> Callable:
    """Ignore the scale that is asked for."""
    return lambda *arguments, scale=None, **options: attend(*arguments, **options)


def same_order_twice(score: Callable) -> Callable:
    """Use delta(m, n) in the last term of DeBERTa too, with the rows of its table as they are."""

    def score_wrongly(q, k, position_q, position_k, relative_position):
        none = torch.zeros_like(position_q)
        by_key = score(q, k, position_q, none, -relative_position)
        by_query = score(q, k, none, position_k, relative_position)
        return by_key + by_query - score(q, k, none, none, relative_position)

    return score_wrongly


def usual_scale(score: Callable) -> Callable:
    """Divide TUPE's two terms by the root of d_k in place of 2 d_k."""

    def score_wrongly(q, k, position_q, position_k, *, bias=None):
        scores = 2**0.5 * score(q, k, position_q, position_k)
        return scores if bias is None else scores + bias

    return score_wrongly


def from_the_start(subtract: Callable) -> Callable:
    """Count each key from the start of the text in place of from the query."""
    return lambda q_positions, k_positions: subtract(torch.zeros_like(q_positions), k_positions)


PERTURBATIONS = {
    "eq-four-terms": Perturbation(
        "the cross terms vanish", patch={"lib.relative.decompose_scores": without_cross_terms}
    ),
    "prp-independence": Perturbation(
        "the variance is said to be 0, as the mean is",
        replace=("sigma**2 * b.square().sum()", "0 * b.square().sum()"),
    ),
    "thm-relative-term": Perturbation(
        "the shift runs backwards", patch={"lib.sinusoidal.shift_matrix": transposed}
    ),
    "eq-shaw": Perturbation("m - n", patch={"lib.shaw.shaw_scores": query_minus_key}),
    "eq-shaw-values": Perturbation("m - n", patch={"lib.shaw.shaw_values": query_minus_key}),
    "eq-transformer-xl": Perturbation(
        "n - m", patch={"lib.transformer_xl.transformer_xl_scores": key_minus_query}
    ),
    "eq-t5": Perturbation("scale 1/sqrt(d_k)", patch={"lib.t5.T5Position": scaled}),
    "eq-t5-bucket": Perturbation(
        "the logarithmic buckets of the past begin one token late",
        patch={
            "lib.t5.T5Position": unaffected,
            "lib.t5.relative_position_bucket": one_bucket_late,
        },
    ),
    "prp-unscaled": Perturbation(
        "the scale stays when it is taken away",
        patch={"lib.attention.scaled_dot_product_attention": always_scaled},
    ),
    "eq-deberta": Perturbation(
        "delta(m, n) in both terms", patch={"lib.relative.deberta_scores": same_order_twice}
    ),
    "eq-tupe": Perturbation("scale 1/sqrt(d_k)", patch={"lib.relative.tupe_scores": usual_scale}),
    "prp-term-variance": Perturbation(
        "divided by the root of d_k, whatever the number of terms",
        replace=("n_terms * d_k", "d_k"),
    ),
    "prp-read-terms": Perturbation(
        "the part without content is not taken away",
        replace=("s(x_q, none_k) - position_position\n", "s(x_q, none_k)\n"),
    ),
    "prp-shift": Perturbation(
        "keys are counted from the start of the text",
        patch={"lib.relative.relative_positions": from_the_start},
    ),
    "prp-shared-bias": Perturbation(
        "the second head reads the shared table from the other end",
        replace=("[one_table, one_table]", "[one_table, one_table.flip(0)]"),
    ),
}
