"""What breaks each claim of chapter 03, and nothing else in it."""

from collections.abc import Callable

import torch

from tests.course.execution import Perturbation
from tests.course.faults import transposed, unaffected


def table_from_one(scheme: type) -> type:
    """Count positions from 1: each token gets the next position's vector."""

    class FromOne(scheme):
        def embed(self, x, positions):
            return x + self.table.roll(-1, dims=0)[positions]

    return FromOne


def keys_alone(scheme: type) -> type:
    """Turn the keys and leave the queries."""

    class KeysAlone(scheme):
        def transform(self, q, k, prepared):
            return q, super().transform(q, k, prepared)[1]

    return KeysAlone


def cosine_with_its_own_exponent(encode: Callable) -> Callable:
    """Give component 2i + 1 the exponent (2i + 1)/d in place of 2i/d."""

    def encode_wrongly(positions, dim, *, base=10000.0, dtype=torch.float32):
        frequencies = base ** (-torch.arange(dim, dtype=torch.float64) / dim)
        phases = positions.to(torch.float64).unsqueeze(-1) * frequencies
        even = torch.arange(dim) % 2 == 0
        return torch.where(even, phases.sin(), phases.cos()).to(dtype)

    return encode_wrongly


def last_pair_at_the_base(measure: Callable) -> Callable:
    """Spread the exponents from 0 to 1, so that the longest wavelength is 2π · base."""

    def measure_wrongly(dim, *, base=10000.0, **options):
        exponents = torch.linspace(0, 1, dim // 2, dtype=torch.float64)
        return 2 * torch.pi * base**exponents

    return measure_wrongly


PERTURBATIONS = {
    "prp-lookup": Perturbation(
        "the row before the right one is looked up",
        replace=("as_lookup = table[tokens]", "as_lookup = table[tokens - 1]"),
    ),
    "prp-one-hot": Perturbation(
        "the distance is said to be 2", replace=("torch.tensor(2.0).sqrt()", "torch.tensor(2.0)")
    ),
    "prp-sum": Perturbation(
        "positions counted from 1", patch={"lib.position.LearnedPosition": table_from_one}
    ),
    "eq-position-functions": Perturbation(
        "only the keys are turned", patch={"lib.position.RotaryPosition": keys_alone}
    ),
    "thm-circles": Perturbation(
        "the pair that should shrink only turns",
        replace=("0.98 * rotation(c)", "rotation(c)"),
    ),
    "eq-sinusoidal": Perturbation(
        "the cosine has the exponent (2i + 1)/d",
        patch={
            "lib.position.SinusoidalPosition": unaffected,
            "lib.sinusoidal.sinusoidal_encoding": cosine_with_its_own_exponent,
        },
    ),
    "eq-wavelength": Perturbation(
        "the longest wavelength is 2π · base",
        patch={"lib.sinusoidal.wavelengths": last_pair_at_the_base},
    ),
    "prp-chord": Perturbation(
        "the arc in place of the chord",
        replace=("2 * torch.sin(omega * (a - b)[..., None] / 2)", "(omega * (a - b)[..., None])"),
    ),
    "prp-grid": Perturbation(
        "the pair with the same number is said to get slower",
        replace=("wide[1 : d // 2] > narrow", "wide[1 : d // 2] < narrow"),
    ),
    "eq-shift": Perturbation(
        "RoPE's rotation in place of its transpose",
        patch={"lib.sinusoidal.shift_matrix": transposed},
    ),
    "thm-shifts": Perturbation(
        "a reflection in place of a rotation",
        replace=("[[c, s], [-s, c]]", "[[c, s], [s, -c]]"),
    ),
    "prp-sign": Perturbation(
        "RoPE turns the other way", patch={"lib.rope.rope_matrix": transposed}
    ),
    "eq-dot": Perturbation(
        "the sum of the positions in place of their difference",
        replace=("(a - b)", "(a + b)"),
    ),
    "thm-between": Perturbation(
        "blocks that reflect",
        replace=("[[x, y], [-y, x]]", "[[x, y], [y, -x]]"),
    ),
    "cor-one-head": Perturbation(
        "a block of one pair is said to cost one dimension, and not two",
        replace=("at_most = d_k // 2", "at_most = d_k"),
    ),
    "thm-never": Perturbation(
        "frequencies in turns per token, so that pair 0 makes whole turns",
        replace=("in frequencies(64).tolist()", "in (2 * math.pi * frequencies(64)).tolist()"),
    ),
    "prp-path": Perturbation(
        "one factor more than there are steps",
        replace=("bound = 0.9**steps", "bound = 0.9 ** (steps + 1)"),
    ),
}
