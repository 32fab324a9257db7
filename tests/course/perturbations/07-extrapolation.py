"""What breaks each claim of chapter 07, and nothing else in it."""

from collections.abc import Callable

import torch

from lib.relative import relative_positions
from tests.course.execution import Perturbation


def next_group(measure: Callable) -> Callable:
    """Report the loss of each group of targets for its neighbour."""
    return lambda *arguments, **sizes: measure(*arguments, **sizes).roll(1, dims=1)


def positions_end(measure: Callable) -> Callable:
    """Take every position from the third on for the third."""
    return lambda *arguments, **sizes: measure(*arguments, **{**sizes, "largest": 3})


def begins_again(scheme: type) -> type:
    """Go back to the first row of the table after the last one."""

    class Wrong(scheme):
        def __init__(self, max_len, d_model):
            super().__init__(max_len, d_model)
            self.rows, self.max_len = max_len, None

        def embed(self, x, positions):
            return super().embed(x, positions % self.rows)

    return Wrong


def four_times_as_far(scheme: type) -> type:
    """Take each distance times four."""

    class Wrong(scheme):
        def prepare(self, q_positions, k_positions):
            return super().prepare(4 * q_positions, 4 * k_positions)

    return Wrong


def far_ones_dealt_out(scheme: type) -> type:
    """Deal out the far distances over all the buckets."""

    class Wrong(scheme):
        def prepare(self, q_positions, k_positions):
            distance = relative_positions(q_positions, k_positions).abs()
            dealt_out = self.table[distance % self.buckets["num_buckets"]].permute(0, 3, 1, 2)
            far = (distance >= self.buckets["max_distance"]).unsqueeze(1)
            return torch.where(far, dealt_out, super().prepare(q_positions, k_positions))

    return Wrong


def sees_everything(make: Callable) -> Callable:
    """Forget the causal mask."""
    return lambda *arguments, **options: torch.ones_like(make(*arguments, **options))


def too_flat(make: Callable) -> Callable:
    """Take a quarter of each slope."""
    return lambda *arguments, **options: make(*arguments, **options) / 4


def turned_twice(tables: Callable) -> Callable:
    """Turn by twice the angle."""
    return lambda positions, *arguments, **options: tables(2 * positions, *arguments, **options)


PERTURBATIONS = {
    "prp-same-targets": Perturbation(
        "the neighbour's targets", patch={"lib.extrapolation.losses_by_block": next_group}
    ),
    "eq-block-loss": Perturbation(
        "positions end", patch={"lib.extrapolation.losses_by_block": positions_end}
    ),
    "prp-average": Perturbation(
        "the average shows the whole rise", replace=("excess * (1 - trained / n)", "excess")
    ),
    "prp-reach": Perturbation(
        "the table begins again", patch={"lib.schemes.LearnedPosition": begins_again}
    ),
    "prp-untrained": Perturbation(
        "distances times four", patch={"lib.t5.T5Position": four_times_as_far}
    ),
    "prp-count": Perturbation(
        "the causal mask is forgotten", patch={"lib.attention.causal_mask": sees_everything}
    ),
    "prp-flat-tail": Perturbation(
        "the far bias is not flat",
        patch={"lib.t5.T5Position": far_ones_dealt_out},
    ),
    "thm-cut": Perturbation("slopes too flat", patch={"lib.alibi.alibi_bias": too_flat}),
    "prp-novelty": Perturbation("angles doubled", patch={"lib.rope.rope_tables": turned_twice}),
    # --- what the record says: the numbers of another scheme, or of another place
    "obs-absolute": Perturbation(
        "linear biases for the sinusoids", replace=('("sinusoidal", None)', '("alibi", None)')
    ),
    "obs-rope": Perturbation(
        "linear biases for the rotations", replace=('risen = rise("rope")', 'risen = rise("alibi")')
    ),
    "obs-scaling": Perturbation(
        "factors exchanged",
        replace=("(cost[name, 8] > cost[name, 2])", "(cost[name, 8] < cost[name, 2])"),
    ),
    "obs-onset": Perturbation(
        "who meets them later breaks earlier",
        replace=("new_at[one] < new_at[other]", "new_at[one] > new_at[other]"),
    ),
    "obs-hold": Perturbation("half of the tolerance", replace=("[0.3, 0.08]", "[0.3, 0.05]")),
    "obs-uses": Perturbation(
        "against the first block, with hardly any context",
        replace=(
            "rise(scheme) > -3 * errors",
            "measured(scheme)[:, last + 1 :] - measured(scheme)[:, :1] > -3 * errors",
        ),
    ),
    "obs-level": Perturbation(
        "the sinusoids for RoPE", replace=('measured("rope")', 'measured("sinusoidal")')
    ),
    "obs-far": Perturbation(
        "heads that ignore the content",
        replace=('attended("alibi", "distant_entropy")', "entropy.expand(3, 2, 4)"),
    ),
    "obs-flat": Perturbation(
        "linear biases for Shaw's", replace=('"t5", "shaw"]', '"t5", "alibi"]')
    ),
    "obs-wide": Perturbation(
        "the same T5 twice", replace=('measured("t5-wide")', 'measured("t5")')
    ),
    "obs-average": Perturbation(
        "T5 for Shaw's", replace=('for scheme in ["shaw"]', 'for scheme in ["t5"]')
    ),
}
