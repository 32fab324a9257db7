"""What breaks each claim of chapter 05, and nothing else in it."""

from collections.abc import Callable

import torch

from lib.rope import LinearScaling
from tests.course.execution import Perturbation
from tests.course.faults import transposed, unaffected


def of_the_distance(make: Callable) -> Callable:
    """Forget the sign of the position, as if it were a distance."""
    return lambda position, *arguments, **options: make(abs(position), *arguments, **options)


def clockwise(scheme: type) -> type:
    class Clockwise(scheme):
        def prepare(self, q_positions, k_positions):
            cos, sin = super().prepare(q_positions, k_positions)
            return cos, -sin

    return Clockwise


def from_one(make: Callable) -> Callable:
    """Count the pairs from 1 where the formula counts from 0."""

    def make_wrongly(dim, *, base=10000.0, scaling=None, **options):
        frequencies = make(dim, base=base, scaling=scaling, **options)
        return frequencies * base ** (-2 / dim) if scaling is None else frequencies

    return make_wrongly


def sped_up(make: Callable) -> Callable:
    """Multiply where position interpolation divides."""

    def make_wrongly(dim, *, scaling=None, **options):
        frequencies = make(dim, scaling=scaling, **options)
        linear = isinstance(scaling, LinearScaling)
        return frequencies * scaling.factor**2 if linear else frequencies

    return make_wrongly


def plain_factor(base_for: Callable) -> Callable:
    """Multiply the base by the factor itself, without the exponent d / (d - 2)."""
    return lambda dim, base, scaling: base * scaling.factor


def without_two_pi(find: Callable) -> Callable:
    """Take the frequency for the number of turns: the ramp lies 2 pi times too far out."""

    def find_wrongly(dim, base, scaling):
        low, high = find(dim, base, scaling)
        shift = dim * torch.log(torch.tensor(2 * torch.pi)).item()
        shift /= 2 * torch.log(torch.tensor(base)).item()
        return low + shift, high + shift

    return find_wrongly


def cosine_alone(make: Callable) -> Callable:
    """Multiply the cosines by the attention factor, and forget the sines."""

    def make_wrongly(positions, frequencies, *, attention_factor=1.0, **options):
        cos, sin = make(positions, frequencies, attention_factor=attention_factor, **options)
        return cos, sin / attention_factor

    return make_wrongly


def always_interleaved(apply: Callable) -> Callable:
    return lambda x, cos, sin, *, layout="interleaved": apply(x, cos, sin)


def inverted(make: Callable) -> Callable:
    """The permutation that goes back."""
    return lambda dim, **options: torch.argsort(make(dim, **options))


PERTURBATIONS = {
    "eq-complex-dot": Perturbation("the conjugate is forgotten", replace=("z.conj() * w", "z * w")),
    "thm-rope-plane": Perturbation(
        "mirror images are not excluded", replace=("fits & ~mirrored.any(dim=1)", "fits")
    ),
    "thm-rope-power": Perturbation(
        "a matrix that is not orthogonal",
        replace=("matrix = orthogonal\n", "matrix = square / 3\n"),
    ),
    "thm-rope-pairs": Perturbation(
        "the basis is not put into the weights of the key",
        replace=("y @ (w_k @ basis)", "y @ w_k"),
    ),
    "eq-rope-frequencies": Perturbation(
        "pairs counted from 1",
        patch={"lib.rope.RotaryPosition": unaffected, "lib.rope.rope_frequencies": from_one},
    ),
    "eq-rope-matrix": Perturbation(
        "the matrix is transposed", patch={"lib.rope.rope_matrix": transposed}
    ),
    "thm-rope-group": Perturbation(
        "negative positions turn like positive ones",
        patch={"lib.rope.rope_matrix": of_the_distance},
    ),
    "eq-rope-relative": Perturbation(
        "the module turns the other way", patch={"lib.rope.RotaryPosition": clockwise}
    ),
    "prp-rope-transpose": Perturbation(
        "the shift matrix is transposed", patch={"lib.sinusoidal.shift_matrix": transposed}
    ),
    "eq-rope-layout": Perturbation(
        "the inverse permutation", patch={"lib.rope.layout_permutation": inverted}
    ),
    "prp-rope-mixed": Perturbation(
        "the layout is ignored", patch={"lib.rope.apply_rope": always_interleaved}
    ),
    "prp-rope-opposite": Perturbation(
        "both components of each pair change their sign",
        replace=("torch.tensor([1.0, -1.0])", "torch.tensor([-1.0, -1.0])"),
    ),
    "prp-rope-values": Perturbation(
        "the outputs are said to turn back",
        replace=("turn(before, shift * theta)", "turn(before, -shift * theta)"),
    ),
    "prp-rope-evicted": Perturbation(
        "offsets are said to shrink",
        replace=("positions - m + evicted", "positions - m - evicted"),
    ),
    "eq-rope-score": Perturbation(
        "the phase has the wrong sign", replace=("theta + h.angle()", "theta - h.angle()")
    ),
    "thm-rope-abel": Perturbation(
        "the last difference, to zero, is forgotten",
        replace=("torch.cat([h, torch.zeros(200, 1)], dim=1)", "h"),
    ),
    "prp-rope-flat": Perturbation(
        "the variance is said to fall with the distance",
        replace=("(s_q * s_k) ** 2 * d", "(s_q * s_k) ** 2 * d / (1 + abs(offset))"),
    ),
    "prp-rope-favourite": Perturbation(
        "the key is turned on in place of back",
        replace=("turn(q, -favourite * theta)", "turn(q, favourite * theta)"),
    ),
    "thm-rope-return": Perturbation(
        "one pair's arcs are counted in place of all",
        replace=("torch.arange(1, boxes**pairs + 1)", "torch.arange(1, boxes // 2)"),
    ),
    "prp-rope-unseen": Perturbation(
        "2 pi is forgotten", replace=("math.log(length / (2 * math.pi))", "math.log(length)")
    ),
    "prp-rope-base": Perturbation(
        "the exponent of the last pair is taken for 1",
        replace=("base ** ((d - 2) / d)", "base"),
    ),
    "eq-rope-interpolation": Perturbation(
        "multiplied in place of divided", patch={"lib.rope.rope_frequencies": sped_up}
    ),
    "eq-rope-ntk": Perturbation(
        "the base times the factor itself", patch={"lib.rope._ntk_base": plain_factor}
    ),
    "eq-rope-yarn": Perturbation(
        "2 pi is forgotten in the ramp", patch={"lib.rope._yarn_range": without_two_pi}
    ),
    "eq-rope-temperature": Perturbation(
        "the factor on the cosines alone", patch={"lib.rope.rope_tables": cosine_alone}
    ),
    "cor-rope-axes": Perturbation(
        "angles that grow like the square of a coordinate",
        replace=("angles = at @ frequencies.T", "angles = at**2 @ frequencies.T"),
    ),
    "eq-rope-llama3": Perturbation(
        "the ramp climbs in the logarithm of the turns",
        replace=(
            "(beta - turns) / (beta - alpha)",
            "(beta / turns).log() / math.log(beta / alpha)",
        ),
    ),
}
