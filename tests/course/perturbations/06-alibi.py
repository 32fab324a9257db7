"""What breaks each claim of chapter 06, and nothing else in it."""

from collections.abc import Callable

import torch

from lib.alibi import alibi_slopes
from lib.relative import relative_positions
from lib.sinusoidal import sinusoidal_encoding
from tests.course.execution import Perturbation
from tests.course.faults import unaffected


def clipped(make: Callable) -> Callable:
    """Let the discount stop at 32 tokens."""

    def make_wrongly(n_heads, *positions, rule="official", dtype=torch.float32):
        slopes = alibi_slopes(n_heads, rule=rule, dtype=dtype).view(-1, 1, 1)
        return make(n_heads, *positions, rule=rule, dtype=dtype).maximum(-32 * slopes)

    return make_wrongly


def first_row_for_all(make: Callable) -> Callable:
    """Give every text of the batch the positions of the first one."""

    def make_wrongly(n_heads, q_positions, k_positions, **options):
        if q_positions.dim() == 2:
            q_positions = q_positions[:1].expand_as(q_positions)
            k_positions = k_positions[:1].expand_as(k_positions)
        return make(n_heads, q_positions, k_positions, **options)

    return make_wrongly


def short_table(make: Callable) -> Callable:
    """Take every position from the 1024th on for the 1024th."""

    def make_wrongly(n_heads, q_positions, k_positions, **options):
        return make(n_heads, q_positions.clamp_max(1023), k_positions.clamp_max(1023), **options)

    return make_wrongly


def position_added(scheme: type) -> type:
    """Add a position vector to the input as well."""

    class Wrong(scheme):
        def embed(self, x, positions):
            return x + sinusoidal_encoding(positions, x.shape[-1], dtype=x.dtype)

    return Wrong


def counted_from_zero(slopes: Callable) -> Callable:
    """Let h begin at 0 in the paper's sentence."""

    def slopes_wrongly(n_heads, *, rule="official", **options):
        factor = 2 ** (8 / n_heads) if rule == "geometric" else 1
        return factor * slopes(n_heads, rule=rule, **options)

    return slopes_wrongly


def every_one(slopes: Callable) -> Callable:
    """Fill up with the first slopes for 2P heads, in place of every second one."""

    def slopes_wrongly(n_heads, *, rule="official", **options):
        power = 1 << (n_heads.bit_length() - 1)
        if rule == "geometric" or power == n_heads:
            return slopes(n_heads, rule=rule, **options)
        return torch.cat(
            (slopes(power, **options), slopes(2 * power, **options)[: n_heads - power])
        )

    return slopes_wrongly


def rewarded(scheme: type) -> type:
    """Turn the sign of the bias round."""

    class Rewarded(scheme):
        def bias(self, q, k, prepared):
            return -prepared

    return Rewarded


def sees_everything(make: Callable) -> Callable:
    """Forget the causal mask."""
    return lambda *arguments, **options: torch.ones_like(make(*arguments, **options))


def signed_distance(scheme: type) -> type:
    """Forget the absolute value."""

    class Signed(scheme):
        def prepare(self, q_positions, k_positions):
            ahead = relative_positions(q_positions, k_positions).unsqueeze(-3)
            slopes = alibi_slopes(self.n_heads, rule=self.rule, dtype=self.table_dtype)
            return slopes.view(-1, 1, 1) * ahead

    return Signed


def without_logarithm(make: Callable) -> Callable:
    """Subtract r_1 r_2 times the distance, as ALiBi does."""

    def make_wrongly(r_1, r_2, q_positions, k_positions):
        distance = relative_positions(q_positions, k_positions).abs().unsqueeze(-3)
        return -(r_1 * r_2).view(-1, 1, 1) * distance

    return make_wrongly


PERTURBATIONS = {
    "prp-discount": Perturbation(
        "the discount stops at 32 tokens",
        patch={"lib.alibi.AlibiPosition": unaffected, "lib.alibi.alibi_bias": clipped},
    ),
    "eq-alibi": Perturbation(
        "the first text's positions for all", patch={"lib.alibi.alibi_bias": first_row_for_all}
    ),
    "prp-translation": Perturbation(
        "a table of 1024 positions", patch={"lib.alibi.alibi_bias": short_table}
    ),
    "prp-position-free": Perturbation(
        "a position vector is added too", patch={"lib.alibi.AlibiPosition": position_added}
    ),
    "eq-alibi-slopes": Perturbation(
        "h begins at 0", patch={"lib.alibi.alibi_slopes": counted_from_zero}
    ),
    "prp-official-slopes": Perturbation(
        "every slope in place of every second one", patch={"lib.alibi.alibi_slopes": every_one}
    ),
    "prp-recency": Perturbation("sign of the bias", patch={"lib.alibi.AlibiPosition": rewarded}),
    "prp-overrule": Perturbation(
        "the price is that of the far key's distance alone",
        replace=("distance[:, None] - distance  #", "distance[:, None] + 0 * distance  #"),
    ),
    "prp-bloom": Perturbation(
        "the causal mask is forgotten", patch={"lib.attention.causal_mask": sees_everything}
    ),
    "prp-mirror": Perturbation(
        "no absolute value", patch={"lib.alibi.AlibiPosition": signed_distance}
    ),
    "thm-tail": Perturbation(
        "the scores' bound is counted once",
        replace=("bound = math.exp(2 * size)", "bound = math.exp(size)"),
    ),
    "cor-window": Perturbation(
        "the window is 1/slope for every share",
        replace=("(math.log(1 / epsilon) + 2 * size) / slope", "1 / slope"),
    ),
    "prp-kerple": Perturbation(
        "a line in place of the logarithm", patch={"lib.kerple.kerple_bias": without_logarithm}
    ),
    "prp-alibi-depth": Perturbation(
        "one layer, whatever their number", replace=("row = row @ matrix", "row = matrix[-1]")
    ),
    "obs-alibi-past": Perturbation(
        "T5 for ALiBi", replace=('"alibi", "distant_share"', '"t5", "distant_share"')
    ),
    "prp-fire": Perturbation(
        "distances in units of the training length, however long the text is",
        replace=("max(shortest, m)", "shortest"),
    ),
}
