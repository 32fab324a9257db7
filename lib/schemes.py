"""Every position scheme by name, and how to make it for a model's sizes (chapters 03 to 07).

A new scheme is one file, with a subclass of :class:`lib.position.Position`, and one entry here. The
tests of all schemes, the grid of chapter 07 and the comparison of chapter 10 read `SCHEMES`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lib.alibi import AlibiPosition
from lib.kerple import KerplePosition
from lib.learned import LearnedPosition
from lib.position import NoPosition, Position
from lib.rope import RotaryPosition
from lib.shaw import ShawPosition
from lib.sinusoidal import SinusoidalPosition
from lib.t5 import T5Position
from lib.transformer_xl import TransformerXLPosition

__all__ = ["SCHEMES", "ModelSizes", "make_position"]


@dataclass(frozen=True)
class ModelSizes:
    """What a scheme may need to know of the model that it is made for.

    Attributes:
        d_model: width of the input.
        n_heads: number of query heads.
        head_dim: width of a head.
        max_len: number of positions, for a scheme with a table of them.
        causal: whether queries see no later key; T5 then has buckets for one direction only.
    """

    d_model: int
    n_heads: int
    head_dim: int
    max_len: int
    causal: bool = True


SCHEMES: dict[str, Callable[..., Position]] = {
    "none": lambda sizes: NoPosition(),
    "learned": lambda sizes: LearnedPosition(sizes.max_len, sizes.d_model),
    "sinusoidal": lambda sizes, **kw: SinusoidalPosition(sizes.d_model, **kw),
    "shaw": lambda sizes, max_distance=16: ShawPosition(sizes.head_dim, max_distance=max_distance),
    "transformer-xl": lambda sizes, **kw: TransformerXLPosition(
        sizes.n_heads, sizes.head_dim, **kw
    ),
    "t5": lambda sizes, **kw: T5Position(sizes.n_heads, bidirectional=not sizes.causal, **kw),
    "rope": lambda sizes, **kw: RotaryPosition(sizes.head_dim, **kw),
    "alibi": lambda sizes, **kw: AlibiPosition(sizes.n_heads, **kw),
    "kerple": lambda sizes: KerplePosition(sizes.n_heads),
}


def make_position(name: str, sizes: ModelSizes, **options: object) -> Position:
    """Make a scheme for a model.

    Args:
        name: a name in ``SCHEMES``; an unknown one is refused with the list of all.
        sizes: the model's.
        options: the scheme's own, as ``base`` for ``"rope"``.

    Raises:
        ValueError: if the name is unknown, or as the scheme's class.

    Example:
        >>> make_position("alibi", ModelSizes(d_model=64, n_heads=4, head_dim=16, max_len=512))
        AlibiPosition()
    """
    if name not in SCHEMES:
        raise ValueError(f"unknown scheme {name!r}, there are {', '.join(SCHEMES)}")
    return SCHEMES[name](sizes, **options)
